import type { TaskRecord } from "./task-record.ts";

/** Where a task stands in the order of lists, from one status change to the next. Never changed, only replaced. */
export interface ListEntry {
  readonly timestamp: number;
  readonly record: TaskRecord;
  /** The commit that put it here. */
  readonly stamp: number;
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
 * sorted in by the next reader. An entry that was left stays as a stone until a quarter of the list is stones.
 */
export class SortedList {
  #items: ListEntry[] = [];
  #ordered = 0;
  #left = 0;
  /** Everything older has been compacted. */
  compactedBefore = Number.NEGATIVE_INFINITY;

  /** How many tasks stand here. */
  get size(): number {
    return this.#items.length - this.#left;
  }

  insert(entry: ListEntry): void {
    const items = this.#items;
    const length = items.length;
    if (this.#ordered === length && (length === 0 || compareEntries(items[length - 1] as ListEntry, entry) <= 0)) {
      this.#ordered = length + 1;
    }
    items.push(entry);
    if (items.length - this.#ordered >= MAX_UNSORTED) this.#settle();
    if (entry.timestamp < this.compactedBefore) this.compactedBefore = entry.timestamp;
  }

  /** A task that stood here has its entry elsewhere now, or nowhere. */
  markRemoved(): void {
    this.#left++;
    if (this.#items.length <= MIN_COMPACTED_LENGTH || this.#left * 4 < this.#items.length) return;
    this.#settle();
    this.#items = this.#items.filter(isCurrent);
    this.#ordered = this.#items.length;
    this.#left = 0;
  }

  /** From the newest entry before `key` (or the newest at all) towards the oldest. */
  *descending(key?: SortKey): Generator<ListEntry, undefined> {
    this.#settle();
    const items = this.#items;
    for (let index = (key === undefined ? items.length : this.#seek(key)) - 1; index >= 0; index--) {
      const entry = items[index] as ListEntry;
      if (isCurrent(entry)) yield entry;
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

/** How many items at the front satisfy a condition that, once false, stays false. */
export function lowerBound<T>(items: readonly T[], isFront: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isFront(items[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
