/**
 * Collections whose members come and go with every request. A `Map` and a `Set` replace their table by a new one now and
 * then, and V8 links each to the next: once one of them is in the old generation, whatever later ones held survives until
 * the next full collection, with all it refers to. Here what refers to a member is emptied on deletion.
 */

interface Cell<T> {
  value: T | undefined;
}

export class TransientMap<Key, Value extends object> {
  readonly #cells = new Map<Key, Cell<Value>>();

  get size(): number {
    return this.#cells.size;
  }

  get(key: Key): Value | undefined {
    return this.#cells.get(key)?.value;
  }

  has(key: Key): boolean {
    return this.#cells.has(key);
  }

  set(key: Key, value: Value): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  delete(key: Key): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) return;
    cell.value = undefined;
    this.#cells.delete(key);
  }

  /** In the order of insertion. */
  values(): Value[] {
    return Array.from(this.#cells.values(), ({ value }) => value as Value);
  }
}

/** Identifies a member of a `TransientSet`. */
export interface Membership<T extends object> {
  /** Undefined once deleted, as all members are. */
  value: T | undefined;
  set: TransientSet<T> | undefined;
  previous: Membership<T> | undefined;
  next: Membership<T> | undefined;
}

/** A linked list: adding and deleting takes neither a search nor a table. */
export class TransientSet<T extends object> {
  #first: Membership<T> | undefined;
  #last: Membership<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A value that is added twice is a member twice. */
  add(value: T): Membership<T> {
    const added: Membership<T> = { value, set: this, previous: this.#last, next: undefined };
    if (this.#last === undefined) this.#first = added;
    else this.#last.next = added;
    this.#last = added;
    this.#size++;
    return added;
  }

  /** Returns false if it is not a member, or no longer. */
  delete(one: Membership<T>): boolean {
    if (one.set !== this) return false;
    const { previous, next } = one;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    this.#size--;
    one.value = undefined;
    one.set = undefined;
    one.previous = undefined;
    one.next = undefined;
    return true;
  }

  /** In the order in which they were added. */
  values(): T[] {
    const values: T[] = [];
    for (let one = this.#first; one !== undefined; one = one.next) values.push(one.value as T);
    return values;
  }
}
