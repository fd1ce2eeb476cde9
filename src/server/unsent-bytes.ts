/**
 * Bytes of answers that their readers have not taken, by owner and of all together. Callers that are not known count as
 * one owner. One answer may always wait, however long it is: it could not be had otherwise.
 */
export class UnsentBytes {
  readonly #max: number;
  readonly #maxPerOwner: number;
  readonly #byOwner = new Map<string, number>();
  #held = 0;

  constructor(max: number, maxPerOwner = max) {
    this.#max = max;
    this.#maxPerOwner = maxPerOwner;
  }

  get held(): number {
    return this.#held;
  }

  fits(bytes: number, owner = UNKNOWN): boolean {
    if (this.#held === 0) return true;
    if (this.#held + bytes > this.#max) return false;
    const own = this.#byOwner.get(owner) ?? 0;
    return own === 0 || own + bytes <= this.#maxPerOwner;
  }

  /** False, and nothing is taken, if there are too many. */
  take(bytes: number, owner = UNKNOWN): boolean {
    if (!this.fits(bytes, owner)) return false;
    this.#held += bytes;
    this.#byOwner.set(owner, (this.#byOwner.get(owner) ?? 0) + bytes);
    return true;
  }

  release(bytes: number, owner = UNKNOWN): void {
    this.#held -= bytes;
    const left = (this.#byOwner.get(owner) ?? 0) - bytes;
    if (left > 0) this.#byOwner.set(owner, left);
    else this.#byOwner.delete(owner);
  }
}

/** No owner has an empty name. */
const UNKNOWN = "";

export const TOO_MUCH_UNSENT = "Too many answers wait to be read; read those first.";

export const DEFAULT_UNSENT = { unsent: 512 * 1024 * 1024, unsentPerOwner: 128 * 1024 * 1024 };
