import { QuotaCounter } from "../../engine/concurrency.ts";
import { type Caller, toNetworkPrefix } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import { type Meter, NO_METER } from "../../model/ports.ts";

export interface Rate {
  /** Requests a second, in the long run. */
  readonly perSecond: number;
  /** Requests that may come at once after a time of silence. */
  readonly burst: number;
}

/** As many are remembered as this, and at most as many again. */
const MAX_REMEMBERED = 20_000;

/**
 * How often each of many asks. One number is kept of each: when its bucket will be full again (the generic cell rate
 * algorithm). Two generations bound the memory: whoever did not ask while a whole generation did is forgotten, which
 * at worst gives it a full bucket.
 */
export class RateLimiter {
  readonly #interval: number;
  readonly #tolerance: number;
  readonly #now: () => number;
  readonly #remembered: number;
  #young = new Map<string, number>();
  #old = new Map<string, number>();

  constructor({ perSecond, burst }: Rate, now: () => number, remembered: number = MAX_REMEMBERED) {
    this.#interval = 1_000 / perSecond;
    this.#tolerance = (burst - 1) * this.#interval;
    this.#now = now;
    this.#remembered = remembered;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** 0 if the request may pass, which counts as `cost` of them, else the seconds after which the next one may. */
  take(who: string, cost = 1): number {
    const now = this.#now();
    const full = this.#young.get(who) ?? this.#old.get(who) ?? now;
    const ahead = Math.max(0, full - now);
    if (ahead > this.#tolerance) return (ahead - this.#tolerance) / 1_000;
    this.#remember(who, now + ahead + cost * this.#interval);
    return 0;
  }

  #remember(who: string, full: number): void {
    if (this.#young.size >= this.#remembered && !this.#young.has(who)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(who, full);
  }
}

export interface AdmissionLimits {
  /** Requests a second from one address; absent: any number. */
  readonly ratePerAddress?: number;
  /** Requests from one address that may come at once. Default: five seconds' worth of its rate. */
  readonly burstPerAddress?: number;
  /** Requests a second of one owner; absent: any number. */
  readonly ratePerOwner?: number;
  /** Requests of one owner that may come at once. Default: five seconds' worth of its rate. */
  readonly burstPerOwner?: number;
  /** Requests from one address that are being answered at the same time. */
  readonly requestsPerAddress: number;
  /** Requests of one owner that are being answered at the same time. */
  readonly requestsPerOwner: number;
}

export const DEFAULT_REQUESTS = { requestsPerAddress: 20_000, requestsPerOwner: 20_000 };

const BURST_SECONDS = 5;
/** When a request ends that is waited for cannot be known. */
const RETRY_AFTER_SECONDS = 1;

/** An owner asks too often. */
export class OwnerLimitError extends ProtocolError {
  readonly caller: Caller;

  constructor(caller: Caller, message: string, retryAfter: number) {
    super("RESOURCE_EXHAUSTED", message, { retryAfter });
    this.caller = caller;
  }
}

/** How much callers may ask, by where they call from and by who they are. */
export class Admission {
  readonly #addressRate: RateLimiter | undefined;
  readonly #ownerRate: RateLimiter | undefined;
  readonly #ofAddresses: QuotaCounter;
  readonly #ofOwners: QuotaCounter;
  readonly #meter: Meter;
  #last: { readonly caller: Caller; readonly placed: Caller } | undefined;

  constructor(limits: AdmissionLimits, now: () => number, meter: Meter = NO_METER) {
    this.#meter = meter;
    this.#addressRate = createLimiter(limits.ratePerAddress, limits.burstPerAddress, now);
    this.#ownerRate = createLimiter(limits.ratePerOwner, limits.burstPerOwner, now);
    this.#ofAddresses = new QuotaCounter(limits.requestsPerAddress);
    this.#ofOwners = new QuotaCounter(limits.requestsPerOwner);
  }

  /** Why a request from there is refused before anyone looks at it; undefined for most. */
  checkAddress(address: string | undefined): ProtocolError | undefined {
    if (this.#addressRate === undefined || address === undefined) return undefined;
    const wait = this.#addressRate.take(toNetworkPrefix(address));
    return wait === 0 ? undefined : this.#exhausted("Too many requests come from your address.", wait);
  }

  /** A caller who has been recognised, with where it calls from. Throws if its owner asks too often. */
  admit(caller: Caller, address: string | undefined): Caller {
    const wait = this.#ownerRate?.take(caller.owner) ?? 0;
    if (wait > 0) {
      this.#meter.count("requests_limited");
      throw new OwnerLimitError(caller, "You make too many requests.", Math.ceil(wait));
    }
    return address === undefined ? caller : this.#placed(caller, address);
  }

  /** Most callers are the same ones again, from the same place. */
  #placed(caller: Caller, address: string): Caller {
    if (caller === this.#last?.caller && address === this.#last.placed.address) return this.#last.placed;
    const placed = { ...caller, address };
    this.#last = { caller, placed };
    return placed;
  }

  /** Throws if too many are under way; otherwise `leave` must follow. */
  startRequest({ owner, address }: Caller): void {
    if (!this.#ofOwners.acquire(owner))
      throw this.#exhausted("Too many of your requests are under way.", RETRY_AFTER_SECONDS);
    if (this.#ofAddresses.acquire(address && toNetworkPrefix(address))) return;
    this.#ofOwners.release(owner);
    throw this.#exhausted("Too many requests from your address are under way.", RETRY_AFTER_SECONDS);
  }

  endRequest({ owner, address }: Caller): void {
    this.#ofOwners.release(owner);
    this.#ofAddresses.release(address && toNetworkPrefix(address));
  }

  #exhausted(message: string, retryAfter: number): ProtocolError {
    this.#meter.count("requests_limited");
    return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: Math.ceil(retryAfter) });
  }
}

function createLimiter(
  perSecond: number | undefined,
  burst: number | undefined,
  now: () => number,
): RateLimiter | undefined {
  if (perSecond === undefined) return undefined;
  const rate: Rate = { perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond * BURST_SECONDS)) };
  return new RateLimiter(rate, now);
}
