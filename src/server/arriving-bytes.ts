/**
 * Bytes of requests that are on their way in, of all callers together: what is waited for is kept, and no one else can
 * use it. Callers that have not shown credentials have a share of it, so that they never keep out those that have.
 */
export class ArrivingBytes {
  readonly #max: number;
  readonly #maxWithoutCredentials: number;
  #held = 0;
  #heldWithoutCredentials = 0;

  constructor(max: number, maxWithoutCredentials = max) {
    this.#max = max;
    this.#maxWithoutCredentials = maxWithoutCredentials;
  }

  get held(): number {
    return this.#held;
  }

  /** False, and nothing is taken, if there are too many. */
  take(bytes: number, hasCredentials: boolean): boolean {
    if (this.#held + bytes > this.#max) return false;
    if (!hasCredentials) {
      if (this.#heldWithoutCredentials + bytes > this.#maxWithoutCredentials) return false;
      this.#heldWithoutCredentials += bytes;
    }
    this.#held += bytes;
    return true;
  }

  release(bytes: number, hadCredentials: boolean): void {
    this.#held -= bytes;
    if (!hadCredentials) this.#heldWithoutCredentials -= bytes;
  }

  /** Their caller has shown credentials meanwhile. */
  recognise(bytes: number): void {
    this.#heldWithoutCredentials -= bytes;
  }
}

/** A request that is longer is read on only when its caller has been let in. */
export const LARGE_REQUEST_BYTES = 64 * 1024;

/** Of `limits.arriving`, where there are credentials to show. */
export const SHARE_WITHOUT_CREDENTIALS = 1 / 4;
