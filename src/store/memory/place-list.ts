import type { TaskRecord } from "./task-record.ts";

/** Where a task stands in the order of lists, from one status change to the next. Never changed, only replaced. */
export interface Place {
  readonly timestamp: number;
  readonly record: TaskRecord;
  /** The commit that put it here. */
  readonly stamp: number;
}

interface Key {
  readonly timestamp: number;
  readonly id: string;
}

export function comparePlaces(left: Place, right: Place): number {
  return left.timestamp - right.timestamp || compareIds(left.record.id, right.record.id);
}

export function compareIds(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isBefore(timestamp: number, id: string, key: Key): boolean {
  return timestamp < key.timestamp || (timestamp === key.timestamp && id < key.id);
}

const SMALL = 32;
/** So that no reader pays for more than this many unsorted places at once. */
const LATE_AT_MOST = 512;

/**
 * Places in ascending order. An insertion is a push: what comes out of order waits behind the ordered part and is
 * sorted in by the next reader. A place that was left stays as a stone until a quarter of the list is stones.
 */
export class PlaceList {
  #items: Place[] = [];
  #ordered = 0;
  #left = 0;
  /** Everything older has been compacted. */
  compactedBefore = Number.NEGATIVE_INFINITY;

  /** How many tasks stand here. */
  get size(): number {
    return this.#items.length - this.#left;
  }

  insert(place: Place): void {
    const items = this.#items;
    const length = items.length;
    if (this.#ordered === length && (length === 0 || comparePlaces(items[length - 1] as Place, place) <= 0)) {
      this.#ordered = length + 1;
    }
    items.push(place);
    if (items.length - this.#ordered >= LATE_AT_MOST) this.#settle();
    if (place.timestamp < this.compactedBefore) this.compactedBefore = place.timestamp;
  }

  /** A task that stood here has its place elsewhere now, or nowhere. */
  leave(): void {
    this.#left++;
    if (this.#items.length <= SMALL || this.#left * 4 < this.#items.length) return;
    this.#settle();
    this.#items = this.#items.filter(isCurrent);
    this.#ordered = this.#items.length;
    this.#left = 0;
  }

  /** From the newest place before `key` (or the newest at all) towards the oldest. */
  *descending(key?: Key): Generator<Place, undefined> {
    this.#settle();
    const items = this.#items;
    for (let index = (key === undefined ? items.length : this.#seek(key)) - 1; index >= 0; index--) {
      const place = items[index] as Place;
      if (isCurrent(place)) yield place;
    }
  }

  /** From the oldest place at or after `timestamp` towards the newest. */
  *ascending(timestamp: number): Generator<Place, undefined> {
    this.#settle();
    const items = this.#items;
    for (let index = this.#seek({ timestamp, id: "" }); index < items.length; index++) {
      const place = items[index] as Place;
      if (isCurrent(place)) yield place;
    }
  }

  /** Number of items before the key. */
  #seek(key: Key): number {
    return lowerBound(this.#items, (place) => isBefore(place.timestamp, place.record.id, key));
  }

  #settle(): void {
    const items = this.#items;
    if (this.#ordered === items.length) return;
    const late = items.slice(this.#ordered).sort(comparePlaces);
    items.length = this.#ordered;
    const first = late[0] as Place;
    const from = lowerBound(items, (place) => comparePlaces(place, first) <= 0);
    const overtaken = items.splice(from);
    let next = 0;
    for (const place of late) {
      while (next < overtaken.length && comparePlaces(overtaken[next] as Place, place) <= 0) {
        items.push(overtaken[next++] as Place);
      }
      items.push(place);
    }
    while (next < overtaken.length) items.push(overtaken[next++] as Place);
    this.#ordered = items.length;
  }
}

function isCurrent(place: Place): boolean {
  return place.record.place === place;
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
