/** A map that forgets what was not asked for the longest when it is full. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #most: number;
  readonly #mayGo: (value: V) => boolean;

  /** `mayGo`: what must not be forgotten yet stays, and the map then grows beyond its bound. */
  constructor(most: number, mayGo: (value: V) => boolean = () => true) {
    this.#most = most;
    this.#mayGo = mayGo;
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
    if (this.#entries.size > this.#most) this.#forget();
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** Looks at few, so that a map of nothing but what must stay costs little, but at more than it grows by. */
  #forget(): void {
    let looked = 0;
    for (const [key, value] of this.#entries) {
      if (this.#entries.size <= this.#most || looked++ === MOST_LOOKED_AT) return;
      this.#entries.delete(key);
      if (!this.#mayGo(value)) this.#entries.set(key, value);
    }
  }
}

const MOST_LOOKED_AT = 4;
