import { QuotaCounter } from "../../engine/concurrency.ts";
import { type Caller, toNetworkPrefix } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import { type Meter, NO_METER } from "../../model/ports.ts";

export interface Rate {
  /** Sustained requests per second. */
  readonly perSecond: number;
  /** Maximum number of requests at once after a quiet period. */
  readonly burst: number;
}

/** Entries per generation; two generations are stored. */
const MAX_REMEMBERED = 20_000;

/**
 * Rate limiter per key. Stores one number per key: when its bucket will be full again (the generic cell rate
 * algorithm). Two generations bound the memory: a key without requests during a whole generation is dropped, which at
 * worst gives it a full bucket.
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

  /** Number of stored keys. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Returns 0 if the request is allowed, which consumes `cost` tokens; otherwise the seconds until the next one is. */
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
  /** Requests per second from one address; absent: unlimited. */
  readonly ratePerAddress?: number;
  /** Burst size per address. Default: five seconds' worth of its rate. */
  readonly burstPerAddress?: number;
  /** Requests per second of one owner; absent: unlimited. */
  readonly ratePerOwner?: number;
  /** Burst size per owner. Default: five seconds' worth of its rate. */
  readonly burstPerOwner?: number;
  /** Maximum number of concurrent requests from one address. */
  readonly requestsPerAddress: number;
  /** Maximum number of concurrent requests of one owner. */
  readonly requestsPerOwner: number;
}

export const DEFAULT_REQUESTS = { requestsPerAddress: 20_000, requestsPerOwner: 20_000 };

const BURST_SECONDS = 5;
/** An estimate: when a running request will end is unknown. */
const RETRY_AFTER_SECONDS = 1;

/** An owner exceeds its request rate. */
export class OwnerLimitError extends ProtocolError {
  readonly caller: Caller;

  constructor(caller: Caller, message: string, retryAfter: number) {
    super("RESOURCE_EXHAUSTED", message, { retryAfter });
    this.caller = caller;
  }
}

/** Limits requests by address and by owner. */
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

  /** Why requests from the address are refused before they are examined; undefined for most. */
  checkAddress(address: string | undefined): ProtocolError | undefined {
    if (this.#addressRate === undefined || address === undefined) return undefined;
    const wait = this.#addressRate.take(toNetworkPrefix(address));
    return wait === 0 ? undefined : this.#exhausted("Too many requests come from your address.", wait);
  }

  /** Adds the address to an authenticated caller. Throws if its owner exceeds the request rate. */
  admit(caller: Caller, address: string | undefined): Caller {
    const wait = this.#ownerRate?.take(caller.owner) ?? 0;
    if (wait > 0) {
      this.#meter.count("requests_limited");
      throw new OwnerLimitError(caller, "You make too many requests.", Math.ceil(wait));
    }
    return address === undefined ? caller : this.#placed(caller, address);
  }

  /** Caches the last result: consecutive requests often have the same caller and address. */
  #placed(caller: Caller, address: string): Caller {
    if (caller === this.#last?.caller && address === this.#last.placed.address) return this.#last.placed;
    const placed = { ...caller, address };
    this.#last = { caller, placed };
    return placed;
  }

  /** Throws if too many requests are running; otherwise `endRequest` must follow. */
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
