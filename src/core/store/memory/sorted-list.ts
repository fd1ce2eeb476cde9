import type { TaskRecord } from "./task-record.ts";

/** A task's position in the order of lists, from one status change to the next. */
export interface ListEntry {
  readonly timestamp: number;
  readonly record: TaskRecord;
  /** The commit that put it here. */
  readonly since: number;
  /** The commit by which the task left, and when, in an entry that is kept for lists of several pages. */
  left: { readonly commit: number; readonly at: number } | undefined;
}

interface SortKey {
  readonly timestamp: number;
  readonly id: string;
}

export function compareEntries(left: ListEntry, right: ListEntry): number {
  return left.timestamp - right.timestamp || compareIds(left.record.id, right.record.id);
}

function compareIds(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isBefore(timestamp: number, id: string, key: SortKey): boolean {
  return timestamp < key.timestamp || (timestamp === key.timestamp && id < key.id);
}

const MIN_COMPACTED_LENGTH = 32;
/** So that no reader pays for more than this many unsorted entries at once. */
const MAX_UNSORTED = 512;

/**
 * Entries in ascending order. An insertion is a push: what comes out of order waits behind the ordered part and is
 * sorted in by the next reader. An entry that its task has left is removed when a quarter of the list are such entries;
 * one that lists may still show stays until `dropPast`.
 */
export class SortedList {
  #items: ListEntry[] = [];
  #ordered = 0;
  #removed = 0;
  /** Entries that are kept for lists which began before their tasks left. */
  #past = 0;

  /** How many tasks stand here. */
  get size(): number {
    return this.#items.length - this.#removed - this.#past;
  }

  insert(entry: ListEntry): void {
    const items = this.#items;
    const length = items.length;
    if (this.#ordered === length && (length === 0 || compareEntries(items[length - 1] as ListEntry, entry) <= 0)) {
      this.#ordered = length + 1;
    }
    items.push(entry);
    if (items.length - this.#ordered >= MAX_UNSORTED) this.#settle();
  }

  /** A position that its task has left. */
  insertPast(entry: ListEntry): void {
    this.#past++;
    this.insert(entry);
  }

  /** Another list has it from now on. */
  markPastRemoved(entry: ListEntry): void {
    entry.left = undefined;
    this.#past--;
    this.markRemoved();
  }

  /** The task of one of the entries has another entry now, or none. */
  markRemoved(): void {
    this.#removed++;
    if (this.#items.length > MIN_COMPACTED_LENGTH && this.#removed * 4 >= this.#items.length) this.#compact();
  }

  /** Entries that tasks left before then are no longer kept for any list. */
  dropPast(before: number): void {
    if (this.#past === 0) return;
    for (const entry of this.#items) if (entry.left !== undefined && entry.left.at < before) forget(entry);
    this.#compact();
  }

  #compact(): void {
    this.#settle();
    this.#items = this.#items.filter((entry) => isCurrent(entry) || isPast(entry));
    this.#ordered = this.#items.length;
    this.#past = this.#items.reduce((sum, entry) => (isCurrent(entry) ? sum : sum + 1), 0);
    this.#removed = 0;
  }

  /** From the newest entry before `key` (or the newest at all) towards the oldest, as they were at the commit `view`. */
  *descending(key?: SortKey, view?: number): Generator<ListEntry, undefined> {
    this.#settle();
    const items = this.#items;
    for (let index = (key === undefined ? items.length : this.#seek(key)) - 1; index >= 0; index--) {
      const entry = items[index] as ListEntry;
      if (isInView(entry, view)) yield entry;
    }
  }

  /** From the oldest entry at or after `timestamp` towards the newest. */
  *ascending(timestamp: number): Generator<ListEntry, undefined> {
    this.#settle();
    const items = this.#items;
    for (let index = this.#seek({ timestamp, id: "" }); index < items.length; index++) {
      const entry = items[index] as ListEntry;
      if (isCurrent(entry)) yield entry;
    }
  }

  /** Number of items before the key. */
  #seek(key: SortKey): number {
    return lowerBound(this.#items, (entry) => isBefore(entry.timestamp, entry.record.id, key));
  }

  #settle(): void {
    const items = this.#items;
    if (this.#ordered === items.length) return;
    const late = items.slice(this.#ordered).sort(compareEntries);
    items.length = this.#ordered;
    const first = late[0] as ListEntry;
    const from = lowerBound(items, (entry) => compareEntries(entry, first) <= 0);
    const overtaken = items.splice(from);
    let next = 0;
    for (const entry of late) {
      while (next < overtaken.length && compareEntries(overtaken[next] as ListEntry, entry) <= 0) {
        items.push(overtaken[next++] as ListEntry);
      }
      items.push(entry);
    }
    while (next < overtaken.length) items.push(overtaken[next++] as ListEntry);
    this.#ordered = items.length;
  }
}

function isCurrent(entry: ListEntry): boolean {
  return entry.record.listEntry === entry;
}

function forget(entry: ListEntry): void {
  const { record } = entry;
  entry.left = undefined;
  const others = record.pastEntries?.filter(({ left }) => left !== undefined);
  record.pastEntries = others?.length === 0 ? undefined : others;
}

function isPast(entry: ListEntry): entry is ListEntry & { left: object } {
  return entry.left !== undefined && entry.record.listEntry !== undefined;
}

/** Whether the task stood there at the commit `view`, or now if there is none. */
export function isInView(entry: ListEntry, view: number | undefined): boolean {
  if (view === undefined) return isCurrent(entry);
  return entry.since <= view && (isCurrent(entry) || (isPast(entry) && entry.left.commit > view));
}

/** How many items at the front satisfy a condition that, once false, stays false. */
function lowerBound<T>(items: readonly T[], isFront: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isFront(items[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
