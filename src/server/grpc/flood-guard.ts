import { type Rate, RateLimiter } from "../rate.ts";

/** Of calls that ended before their caller was admitted: a reset can be sent without waiting for anything. */
export const CALL_COST = 1;
export const RESET_COST = 10;

const BURST_SECONDS = 10;
/** Calls of all addresses together that no one was admitted for. */
const RATE_OF_ALL: Rate = { perSecond: 500 * RESET_COST, burst: 500 * RESET_COST * BURST_SECONDS };
const REFUSED_MS = 10_000;
const MAX_REFUSED = 20_000;

/** `address`: nothing is taken from there for a while; `all`: the call was one too many of all callers together. */
export type Excess = "address" | "all";

/** How many calls without an admitted caller come from each address and from all together. */
export class FloodGuard {
  readonly #ofAddress: RateLimiter;
  readonly #ofAll: RateLimiter;
  readonly #now: () => number;
  /** Until when, in the order in which they were refused. */
  readonly #refused = new Map<string, number>();

  constructor(resetsPerAddress: number, now: () => number) {
    const perSecond = resetsPerAddress * RESET_COST;
    this.#ofAddress = new RateLimiter({ perSecond, burst: perSecond * BURST_SECONDS }, now);
    this.#ofAll = new RateLimiter(RATE_OF_ALL, now);
    this.#now = now;
  }

  /** Undefined if that was not too much. What is too much from one address does not count for all. */
  charge(network: string, cost: number): Excess | undefined {
    if (this.refuses(network) || this.#ofAddress.take(network, cost) > 0) {
      this.#refuse(network);
      return "address";
    }
    return this.#ofAll.take("", cost) > 0 ? "all" : undefined;
  }

  refuses(network: string): boolean {
    const until = this.#refused.get(network);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#refused.delete(network);
    return false;
  }

  #refuse(network: string): void {
    if (this.#refused.has(network)) return;
    const [first] = this.#refused.keys();
    if (first !== undefined && this.#refused.size >= MAX_REFUSED) this.#refused.delete(first);
    this.#refused.set(network, this.#now() + REFUSED_MS);
  }
}
