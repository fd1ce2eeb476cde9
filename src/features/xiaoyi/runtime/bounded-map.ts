/** A map that evicts the least recently used entry when it is full. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #maxSize: number;
  readonly #isEvictable: (value: V) => boolean;

  /** Entries that are not evictable stay, so the map may grow beyond its maximum size. */
  constructor(maxSize: number, isEvictable: (value: V) => boolean = () => true) {
    this.#maxSize = maxSize;
    this.#isEvictable = isEvictable;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#maxSize) this.#evict();
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /**
   * Checks few entries, so that a map full of entries that must stay costs little, but more than are added at a time.
   */
  #evict(): void {
    let checked = 0;
    for (const [key, value] of this.#entries) {
      if (this.#entries.size <= this.#maxSize || checked++ === MAX_EVICTION_CHECKS) return;
      this.#entries.delete(key);
      if (!this.#isEvictable(value)) this.#entries.set(key, value);
    }
  }
}

const MAX_EVICTION_CHECKS = 4;
