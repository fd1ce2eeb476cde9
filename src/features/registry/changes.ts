/** The last changes of a registry, numbered and durable: what watchers follow, and what other nodes learn from. */

import { isObject } from "../../core/model/json.ts";
import type { Clock } from "../../core/model/ports.ts";
import type { Records } from "../../core/model/records.ts";
import type { Health, RegistryEntry, Visibility } from "./entry.ts";
import { identifierOf } from "./entry.ts";

/** Records of the store, as the engine offers them. */
export type RegistryRecords = Omit<Records, "update">;

export type ChangeKind = "registered" | "updated" | "stale" | "removed";

export interface Change {
  readonly number: number;
  readonly kind: ChangeKind;
  readonly id: string;
  readonly identifier: string;
  readonly displayName: string;
  readonly health: Health;
  readonly owner: string;
  readonly visibility: Visibility;
  /** Present if it was another. */
  readonly visibilityBefore?: Visibility;
  readonly at: number;
}

export interface Reset {
  /** The number from which one can still continue. */
  readonly reset: { readonly oldest: number };
  readonly last: number;
}

const SPACE = "registry:changes";
/** Changes that are kept, for watchers that come back. */
export const KEPT_CHANGES = 2_000;
const PAGE = 500;
/** Numbers that a node may have reserved and written in another order. */
const OVERLAP = 100;
/** Numbers sort as text. */
const toKey = (number: number) => String(number).padStart(16, "0");

export class ChangeLog {
  readonly #records: RegistryRecords;
  readonly #clock: Clock;
  /** In order; the last `KEPT_CHANGES`. */
  #kept: Change[] = [];
  #last: number;
  /** Everything after it is kept. */
  #floor: number;
  /** Numbers of changes that are being written, and the highest of them. */
  readonly #writing = new Set<number>();
  #reserved = 0;
  /** Taken in, and not yet returned by `readNew`. */
  readonly #foreign: Change[] = [];
  readonly #watchers = new Set<() => void>();
  #closed = false;

  constructor(records: RegistryRecords, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
    // A number of an earlier process without a durable store is older than all there are now.
    this.#last = clock.now();
    this.#floor = this.#last;
  }

  /** Number of the newest change. */
  get last(): number {
    return this.#last;
  }

  async open(): Promise<void> {
    this.#kept = [];
    let after: string | undefined;
    for (;;) {
      const page = await this.#records.records(SPACE, { limit: PAGE, after });
      this.#take(page.flatMap(({ value }) => parseChange(value) ?? []));
      after = page.at(-1)?.key ?? after;
      if (page.length < PAGE) break;
    }
    const newest = this.#kept.at(-1);
    if (newest !== undefined) {
      this.#last = newest.number;
      this.#floor = this.#kept.length < KEPT_CHANGES ? 0 : (this.#kept[0]?.number ?? 0);
    } else if (after === undefined) {
      // All nodes count from where the first one began, whatever their clocks say.
      const record = { space: SPACE, key: toKey(this.#last), value: "null", ifValue: null };
      await this.#records.put(record);
    } else {
      this.#last = Number(after) || this.#last;
      this.#floor = this.#last;
    }
  }

  /** Watchers are told once it is stored. */
  async append(kind: ChangeKind, entry: RegistryEntry, before = entry.visibility): Promise<void> {
    const { id, owner, visibility, health, card } = entry;
    const at = this.#clock.now();
    const about = {
      ...{ kind, id, identifier: identifierOf(entry), displayName: card.name, health, owner, visibility, at },
      visibilityBefore: before !== visibility ? before : undefined,
    };
    for (;;) {
      const number = Math.max(this.#last, this.#reserved) + 1;
      this.#reserved = number;
      this.#writing.add(number);
      const change = { number, ...about };
      const record = { space: SPACE, key: toKey(number), value: JSON.stringify(change), keep: KEPT_CHANGES };
      try {
        if (await this.#records.put({ ...record, ifValue: null })) {
          // Watchers are not notified of it before what others have written below it.
          if (number > this.#last + 1) await this.prepare();
          this.#take([change]);
          return;
        }
      } finally {
        this.#writing.delete(number);
      }
      await this.prepare();
    }
  }

  /**
   * To be called before `append`: the next number is then above all that other nodes have written, which read on from
   * the highest they know.
   */
  async prepare(): Promise<void> {
    this.#foreign.push(...(await this.#readAfter(this.#last)));
  }

  /** Reads what other nodes have written; returns what was not returned before. */
  async readNew(): Promise<readonly Change[]> {
    // What this node wrote last may be above what another one wrote a moment before.
    const read = await this.#readAfter(Math.max(0, this.#last - OVERLAP));
    return [...this.#foreign.splice(0), ...read];
  }

  /** Takes in what is not known, and not being written here. */
  async #readAfter(number: number): Promise<readonly Change[]> {
    let after = toKey(number);
    const read: Change[] = [];
    for (let isLast = false; !isLast; ) {
      const page = await this.#records.records(SPACE, { limit: PAGE, after });
      read.push(...page.flatMap(({ value }) => parseChange(value) ?? []));
      after = page.at(-1)?.key ?? after;
      isLast = page.length < PAGE;
    }
    this.#reserved = Math.max(this.#reserved, Number(after));
    if (read.length === 0) return read;
    const known = new Set(this.#kept.map((change) => change.number));
    const changes = read.filter((change) => !known.has(change.number) && !this.#writing.has(change.number));
    this.#take(changes);
    return changes;
  }

  #take(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    const isNewest = (changes[0]?.number ?? 0) > this.#last || this.#kept.length === 0;
    this.#kept.push(...changes);
    // Two that were written at once may come back in the other order.
    if (!isNewest) this.#kept.sort((one, other) => one.number - other.number);
    if (this.#kept.length > KEPT_CHANGES) {
      this.#kept = this.#kept.slice(-KEPT_CHANGES);
      this.#floor = this.#kept[0]?.number ?? this.#floor;
    }
    this.#last = Math.max(this.#last, this.#kept.at(-1)?.number ?? 0);
    for (const notify of this.#watchers) notify();
  }

  /** Whether nothing is missing after that number. */
  canContinue(after: number): boolean {
    return after >= this.#floor && after <= this.#last;
  }

  /** The number from which one can still continue. */
  get floor(): number {
    return this.#floor;
  }

  /**
   * Batches of changes after a number, as they come; ends with the log. For one who reads so slowly that changes in
   * between are no longer kept, `reset` comes instead of them, and what follows is after `last`.
   */
  follow(after: number): AsyncIterableIterator<readonly Change[] | Reset, undefined> {
    let cursor = after;
    let ended = false;
    let wake: (() => void) | undefined;
    const notify = () => wake?.();
    this.#watchers.add(notify);
    const end = () => {
      ended = true;
      this.#watchers.delete(notify);
      notify();
    };
    const isOver = () => ended || this.#closed;
    const next = async (): Promise<IteratorResult<readonly Change[] | Reset, undefined>> => {
      for (;;) {
        if (isOver()) return { done: true, value: undefined };
        if (cursor < this.#floor) {
          cursor = this.#last;
          return { done: false, value: { reset: { oldest: this.#floor }, last: cursor } };
        }
        const from = this.#kept.findLastIndex(({ number }) => number <= cursor) + 1;
        const batch = this.#kept.slice(from);
        if (batch.length > 0) {
          cursor = batch.at(-1)?.number ?? cursor;
          return { done: false, value: batch };
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    return {
      next,
      return: async () => {
        end();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** Ends all that follow. */
  close(): void {
    this.#closed = true;
    for (const notify of this.#watchers) notify();
  }
}

function parseChange(text: string): Change | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && typeof value.number === "number" && typeof value.id === "string"
      ? (value as object as Change)
      : undefined;
  } catch {
    return undefined;
  }
}
