/** A sorted array: binary search to find, one move of memory to insert. Enough for some hundred thousand. */
export class OrderedList<T> {
  #items: T[] = [];
  /** Not sorted in yet: at the start of a server there are many. */
  #added: T[] = [];
  readonly #compare: (one: T, other: T) => number;

  /** Two items compare as 0 only if they are the same. */
  constructor(compare: (one: T, other: T) => number) {
    this.#compare = compare;
  }

  get length(): number {
    return this.#items.length + this.#added.length;
  }

  add(item: T): void {
    this.#added.push(item);
  }

  delete(item: T): void {
    const items = this.#sorted();
    const at = this.#find(item);
    const found = items[at];
    if (found !== undefined && this.#compare(found, item) === 0) items.splice(at, 1);
  }

  /** Index of the first item that does not come before. */
  indexOf(item: T): number {
    this.#sorted();
    return this.#find(item);
  }

  at(index: number): T | undefined {
    return this.#sorted()[index];
  }

  #find(item: T): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#items[middle] as T, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #sorted(): T[] {
    const added = this.#added;
    if (added.length === 0) return this.#items;
    this.#added = [];
    if (added.length > MAX_INSERTED) this.#items = [...this.#items, ...added].sort(this.#compare);
    else for (const item of added) this.#items.splice(this.#find(item), 0, item);
    return this.#items;
  }
}

const MAX_INSERTED = 32;
