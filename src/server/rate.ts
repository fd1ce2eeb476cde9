export interface Rate {
  /** Requests a second, in the long run. */
  readonly perSecond: number;
  /** Requests that may come at once after a time of silence. */
  readonly burst: number;
}

/** As many are remembered as this, and at most as many again. */
const REMEMBERED = 20_000;

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

  constructor({ perSecond, burst }: Rate, now: () => number, remembered: number = REMEMBERED) {
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
