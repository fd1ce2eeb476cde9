import type { Log, Meter } from "../../model/ports.ts";

/**
 * Bytes of answers that their readers have not taken, by owner and of all together. Callers that are not known count as
 * one owner. One answer may always wait, however long it is: it could not be had otherwise.
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

  /** False, and nothing is taken, if there are too many. */
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
  /** A reader that takes nothing for this long is cut off; that of a stream can resume from its cursor. */
  readonly stalledReaderMs: number;
  readonly unsent: UnsentByteBudget;
  readonly log: Log;
  readonly meter: Meter;
}

/** No owner has an empty name. */
const UNKNOWN_OWNER = "";

export const TOO_MUCH_UNSENT = "Too many answers wait to be read; read those first.";

export const DEFAULT_UNSENT_LIMITS = { unsent: 512 * 1024 * 1024, unsentPerOwner: 128 * 1024 * 1024 };

/**
 * Bytes of requests that are on their way in, of all callers together: what is waited for is kept, and no one else can
 * use it. Callers that have not shown credentials have a share of it, so that they never keep out those that have.
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

  /** False, and nothing is taken, if there are too many. */
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

  /** Their caller has shown credentials meanwhile. */
  recognise(bytes: number): void {
    this.#heldWithoutCredentials -= bytes;
  }
}

/** A request that is longer is read on only when its caller is authorised. */
export const LARGE_REQUEST_BYTES = 64 * 1024;

/** Of `limits.arriving`, where callers can show credentials. */
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

/** Where callers cannot show credentials, all of them count as one and may use everything. */
export function createByteBudgets(limits: ByteLimits, identifies: boolean): ByteBudgets {
  const withoutCredentials = identifies ? limits.arriving * SHARE_WITHOUT_CREDENTIALS : limits.arriving;
  return {
    arriving: new IncomingByteBudget(limits.arriving, withoutCredentials),
    unsent: new UnsentByteBudget(limits.unsent, identifies ? limits.unsentPerOwner : limits.unsent),
  };
}
