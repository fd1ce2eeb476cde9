import type { Clock } from "../../model/ports.ts";
import type { TaskState } from "../../model/task.ts";
import { LIST_VIEW_MS, type StoreStats } from "../contract.ts";
import { toSnapshotParts } from "../history.ts";
import { stateOf } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import type { CommitCounters } from "./counters.ts";
import { commitAll, salvage } from "./damage.ts";
import type { SqliteStatement } from "./driver.ts";
import type { IdempotencyKeys } from "./idempotency-keys.ts";
import type { Reader } from "./reader.ts";
import type { Records } from "./records.ts";
import { columns, keyOf, ofTask } from "./rows.ts";
import { pragma, SCHEMA_VERSION } from "./schema.ts";

const MIN_FREE_PAGES = 256;
/** At a time: moving them holds up all others. */
const MAX_VACUUMED_PAGES = 128;

interface EndedRow {
  readonly seq: number;
  readonly scope: number;
  readonly state: number;
  readonly number: number;
  readonly bytes: number;
}

interface RetentionParts {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly keys: IdempotencyKeys;
  readonly records: Records;
  readonly counters: CommitCounters;
}

/** What is done to tasks after they have ended, and what there is. */
export class Retention {
  readonly #connection: Connection;
  readonly #reader: Reader;
  readonly #keys: IdempotencyKeys;
  readonly #records: Records;
  readonly #counters: CommitCounters;
  readonly #clock: Clock;
  readonly #whole: SqliteStatement<{ seq: number }>;
  readonly #addPart: SqliteStatement<object>;
  readonly #dropLog: SqliteStatement<object>;
  readonly #setFloor: SqliteStatement<object>;
  readonly #ended: SqliteStatement<{ seq: number }>;
  readonly #task: SqliteStatement<EndedRow>;
  readonly #countByState: SqliteStatement<{ state: number; n: number }>;
  readonly #events: SqliteStatement<{ events: number }>;
  readonly #forgetPositions: SqliteStatement<object>;
  /** Tasks that cannot be read: they must not keep others from having their turn. */
  readonly #damaged = new Set<number>();

  constructor(connection: Connection, { clock, reader, keys, records, counters }: RetentionParts) {
    const { driver } = connection;
    this.#connection = connection;
    this.#reader = reader;
    this.#keys = keys;
    this.#records = records;
    this.#counters = counters;
    this.#clock = clock;
    this.#whole = driver.prepare(
      `SELECT seq FROM task INDEXED BY task_ended
       WHERE open = 0 AND (floor > 0) = 0 AND ended_at <= ? ORDER BY ended_at LIMIT ?`,
    );
    this.#addPart = driver.prepare(`INSERT INTO snapshot (key, body) VALUES (${keyOf("?", "?")}, ?)`);
    this.#dropLog = driver.prepare(`DELETE FROM segment WHERE ${ofTask("?")}`);
    this.#setFloor = driver.prepare("UPDATE task SET floor = number, message_segment = NULL, bytes = ? WHERE seq = ?");
    this.#ended = driver.prepare(
      `SELECT seq FROM task INDEXED BY task_ended
       WHERE open = 0 AND (floor > 0) IN (0, 1) AND ended_at <= ? LIMIT ?`,
    );
    this.#task = driver.prepare(`SELECT ${columns("seq, scope, state, number, bytes")} FROM task WHERE seq = ?`);
    this.#countByState = driver.prepare(
      `SELECT ${columns("state")}, sum(n) AS n FROM counter GROUP BY counter.state HAVING sum(n) > 0`,
    );
    this.#events = driver.prepare(`SELECT ${columns("events")} FROM store`);
    this.#forgetPositions = driver.prepare("DELETE FROM past_position WHERE left_at < ?");
  }

  compact(ageMs: number, max: number): number {
    return this.#forSome(this.#whole, ageMs, max, ({ seq, number, scope, bytes }) =>
      this.#counters.addBytes(scope, this.#compactOne(seq, number) - bytes),
    );
  }

  /** Returns how many tasks had their turn. */
  #forSome(
    query: SqliteStatement<{ seq: number }>,
    ageMs: number,
    max: number,
    work: (task: EndedRow) => void,
  ): number {
    const endedBy = Math.max(this.#clock.now() - ageMs, -1);
    const found = query.all(endedBy, max + this.#damaged.size);
    const seqs = found.map(({ seq }) => seq).filter((seq) => !this.#damaged.has(seq));
    const turn = seqs.slice(0, max);
    const commit = (some: readonly number[]) =>
      this.#counters.commit(() => {
        for (const seq of some) for (const task of this.#task.all(seq)) work(task);
      });
    const leaveOut = (seq: number, error: unknown) => {
      this.#damaged.add(seq);
      this.#connection.reportDamage(`task number ${seq}`, error);
    };
    commitAll(turn, commit, leaveOut);
    return turn.length;
  }

  /** Returns how many bytes are left of the task. */
  #compactOne(seq: number, number: number): number {
    const parts = toSnapshotParts(this.#reader.fold(seq, number).toTask());
    this.#dropLog.run(seq, seq);
    let bytes = 0;
    for (const { part, body } of parts) {
      bytes += Buffer.byteLength(body);
      this.#addPart.run(seq, part, body);
    }
    this.#setFloor.run(bytes, seq);
    return bytes;
  }

  prune(ageMs: number, max: number): number {
    const removals = {
      "idempotency keys": () => this.#keys.deleteExpired(),
      records: () => this.#records.deleteExpired(),
      "positions of earlier lists": () => this.#forgetPositions.run(this.#clock.now() - LIST_VIEW_MS),
    };
    salvage(
      Object.entries(removals),
      ([, remove]) => this.#connection.transact(remove),
      ([what], error) => this.#connection.reportDamage(what, error),
    );
    const pruned = this.#forSome(this.#ended, ageMs, max, (task) =>
      this.#counters.removeTask({ ...task, state: stateOf(task.state) }),
    );
    this.shrink();
    return pruned;
  }

  /** Gives some unused pages back to the disk; as many as will soon be used again are kept. True: there are more. */
  shrink(): boolean {
    const { driver } = this.#connection;
    const excess = this.#excessPages();
    if (excess <= 0) return false;
    driver.exec(`PRAGMA incremental_vacuum(${Math.min(excess, MAX_VACUUMED_PAGES)})`);
    const left = this.#excessPages();
    // A file that cannot shrink keeps all of them.
    return left > 0 && left < excess;
  }

  #excessPages(): number {
    const { driver } = this.#connection;
    const kept = Math.max(MIN_FREE_PAGES, pragma(driver, "page_count") / 8);
    return Math.floor(pragma(driver, "freelist_count") - kept);
  }

  stats(): StoreStats {
    const byState: Partial<Record<TaskState, number>> = {};
    let tasks = 0;
    for (const { state, n } of this.#countByState.all()) {
      byState[stateOf(state)] = n;
      tasks += n;
    }
    const { driver } = this.#connection;
    return {
      tasks,
      byState,
      events: (this.#events.get()?.events ?? 0) + this.#counters.eventsAhead,
      bytes: pragma(driver, "page_count") * pragma(driver, "page_size"),
      freeBytes: pragma(driver, "freelist_count") * pragma(driver, "page_size"),
      schemaVersion: SCHEMA_VERSION,
    };
  }
}
