/** A sorted array: binary search to find, one move of memory to insert. Enough for a hundred thousand. */
export class OrderedList<T> {
  readonly #items: T[] = [];
  readonly #compare: (one: T, other: T) => number;

  /** Two items compare as 0 only if they are the same. */
  constructor(compare: (one: T, other: T) => number) {
    this.#compare = compare;
  }

  /** Index of the first item that does not come before. */
  indexOf(item: T): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#items[middle] as T, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  add(item: T): void {
    const at = this.indexOf(item);
    if (at === this.#items.length) this.#items.push(item);
    else this.#items.splice(at, 0, item);
  }

  delete(item: T): void {
    const at = this.indexOf(item);
    const found = this.#items[at];
    if (found !== undefined && this.#compare(found, item) === 0) this.#items.splice(at, 1);
  }

  at(index: number): T | undefined {
    return this.#items[index];
  }

  get length(): number {
    return this.#items.length;
  }
}
