/** Bytes of requests that are on their way in, of all callers together: what is waited for is kept, and nobody else can use it. */
export class ArrivingBytes {
  readonly #most: number;
  #held = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get held(): number {
    return this.#held;
  }

  /** False, and nothing is taken, if there are too many. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#most) return false;
    this.#held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

/** A request that is longer is read on only when its caller has been let in. */
export const LARGE_REQUEST_BYTES = 64 * 1024;
