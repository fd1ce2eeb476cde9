import type { Log, Meter } from "../../model/ports.ts";

/**
 * Bytes of responses that have not been read, per owner and in total. Anonymous callers count as one owner. One
 * response is always accepted, whatever its size: it could not be delivered otherwise.
 */
export class UnsentByteBudget {
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

  fits(bytes: number, owner = UNKNOWN_OWNER): boolean {
    if (this.#held === 0) return true;
    if (this.#held + bytes > this.#max) return false;
    const own = this.#byOwner.get(owner) ?? 0;
    return own === 0 || own + bytes <= this.#maxPerOwner;
  }

  /** Returns false, and takes nothing, if the budget is exceeded. */
  take(bytes: number, owner = UNKNOWN_OWNER): boolean {
    if (!this.fits(bytes, owner)) return false;
    this.#held += bytes;
    this.#byOwner.set(owner, (this.#byOwner.get(owner) ?? 0) + bytes);
    return true;
  }

  release(bytes: number, owner = UNKNOWN_OWNER): void {
    this.#held -= bytes;
    const left = (this.#byOwner.get(owner) ?? 0) - bytes;
    if (left > 0) this.#byOwner.set(owner, left);
    else this.#byOwner.delete(owner);
  }
}

/** How long and how much readers may leave unread. */
export interface UnreadLimits {
  /** A reader that takes nothing for this long is disconnected; the reader of a stream can resume from its cursor. */
  readonly stalledReaderMs: number;
  readonly unsent: UnsentByteBudget;
  readonly log: Log;
  readonly meter: Meter;
}

/** Never the name of a real owner. */
const UNKNOWN_OWNER = "";

export const TOO_MUCH_UNSENT = "Too many answers wait to be read; read those first.";

export const DEFAULT_UNSENT_LIMITS = { unsent: 512 * 1024 * 1024, unsentPerOwner: 128 * 1024 * 1024 };

/**
 * Bytes of requests that are being received, of all callers together: buffered bytes are unavailable to others. Callers
 * without credentials have a share of the budget, so that they never block those with credentials.
 */
export class IncomingByteBudget {
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

  fits(bytes: number, hasCredentials: boolean): boolean {
    if (this.#held + bytes > this.#max) return false;
    return hasCredentials || this.#heldWithoutCredentials + bytes <= this.#maxWithoutCredentials;
  }

  /** Returns false, and takes nothing, if the budget is exceeded. */
  take(bytes: number, hasCredentials: boolean): boolean {
    if (!this.fits(bytes, hasCredentials)) return false;
    if (!hasCredentials) this.#heldWithoutCredentials += bytes;
    this.#held += bytes;
    return true;
  }

  release(bytes: number, hadCredentials: boolean): void {
    this.#held -= bytes;
    if (!hadCredentials) this.#heldWithoutCredentials -= bytes;
  }

  /** To be called when the caller has authenticated while its request was being received. */
  recognise(bytes: number): void {
    this.#heldWithoutCredentials -= bytes;
  }
}

/** The rest of a larger request is read only after its caller is authorised. */
export const LARGE_REQUEST_BYTES = 64 * 1024;

/** Fraction of `limits.arriving`, where callers can authenticate. */
const SHARE_WITHOUT_CREDENTIALS = 1 / 4;

/** Shared by all carriers of one server. */
export interface ByteBudgets {
  readonly arriving: IncomingByteBudget;
  readonly unsent: UnsentByteBudget;
}

interface ByteLimits {
  readonly arriving: number;
  readonly unsent: number;
  readonly unsentPerOwner: number;
}

/** Where callers cannot authenticate, anonymous callers may use the whole budget. */
export function createByteBudgets(limits: ByteLimits, identifies: boolean): ByteBudgets {
  const withoutCredentials = identifies ? limits.arriving * SHARE_WITHOUT_CREDENTIALS : limits.arriving;
  return {
    arriving: new IncomingByteBudget(limits.arriving, withoutCredentials),
    unsent: new UnsentByteBudget(limits.unsent, identifies ? limits.unsentPerOwner : limits.unsent),
  };
}
