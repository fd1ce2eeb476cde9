/**
 * Collections whose members come and go with every request. A `Map` and a `Set` replace their table by a new one now and
 * then, and V8 links each to the next: once one of them is in the old generation, whatever later ones held survives until
 * the next full collection, with all it refers to. Here a table refers to members by a cell that is emptied on deletion.
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
export type Membership<T extends object> = Cell<T>;

export class TransientSet<T extends object> {
  readonly #cells = new Set<Cell<T>>();

  get size(): number {
    return this.#cells.size;
  }

  /** A value that is added twice is a member twice. */
  add(value: T): Membership<T> {
    const cell: Cell<T> = { value };
    this.#cells.add(cell);
    return cell;
  }

  /** Returns false if it is not a member, or no longer. */
  delete(membership: Membership<T>): boolean {
    if (!this.#cells.delete(membership)) return false;
    membership.value = undefined;
    return true;
  }

  /** In the order in which they were added. */
  values(): T[] {
    return Array.from(this.#cells, ({ value }) => value as T);
  }
}
