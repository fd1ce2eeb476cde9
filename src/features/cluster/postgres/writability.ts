import type { Clock, Log } from "../../../core/model/ports.ts";
import { StoreError } from "../../../core/store/errors.ts";
import type { Database } from "./connection.ts";
import { sqlStateOf } from "./errors.ts";

/** For how long a write that succeeded is taken as proof that the next one will, and one that failed that it will not. */
const TRUST_SUCCESS_MS = 2_000;
const TRUST_FAILURE_MS = 1_000;

/** Whether the database takes writes, known from those that were made of late. */
export function createWritability({ query, place }: Database, clock: Clock, log: Log) {
  let trouble: StoreError | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;

  function settle(error: StoreError | undefined): void {
    triedAt = clock.now();
    const changed = error?.code !== trouble?.code;
    trouble = error;
    if (!changed) return;
    if (error === undefined) log.info({ place }, "The task store takes writes again.");
    else log.error({ err: error, place }, "The task store does not take writes.");
  }

  /** Does the write and remembers how it went. */
  async function observe<T>(write: () => Promise<T>): Promise<T> {
    try {
      const result = await write();
      settle(undefined);
      return result;
    } catch (error) {
      if (error instanceof StoreError && !isAboutStatement(error)) settle(error);
      throw error;
    }
  }

  return {
    observe,
    /** Rejects with why writes fail, if they do; writes something to find out unless that is known. */
    async check(): Promise<void> {
      const age = clock.now() - triedAt;
      if (age >= (trouble === undefined ? TRUST_SUCCESS_MS : TRUST_FAILURE_MS)) {
        await observe(() =>
          query("INSERT INTO @counter_delta (scope, state, tasks, bytes, events) VALUES (0, 0, 0, 0, 0)"),
        );
      }
      if (trouble !== undefined) throw trouble;
    },
  };
}

/** A value or a conflict that one statement was refused for says nothing of the next. */
function isAboutStatement(error: StoreError): boolean {
  return /^(?:21|22|23|40)/.test(sqlStateOf(error) ?? "");
}
