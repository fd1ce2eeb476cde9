import { networkOf } from "../model/address.ts";
import { ProtocolError } from "../model/errors.ts";

const WINDOW_MS = 60_000;
/** Addresses that are remembered; of more, those that have been quiet longest are forgotten. */
const MOST = 10_000;

interface Failures {
  count: number;
  readonly until: number;
}

/** Refuses addresses that guess. Costs nothing while nobody does. */
export class FailedLogins {
  readonly #most: number;
  readonly #now: () => number;
  readonly #failures = new Map<string, Failures>();

  constructor(mostPerMinute: number, now: () => number) {
    this.#most = mostPerMinute;
    this.#now = now;
  }

  /** Throws RESOURCE_EXHAUSTED, also for right credentials: otherwise guessing could go on until one is right. */
  admit(address: string | undefined): void {
    if (address === undefined || this.#failures.size === 0) return;
    const key = networkOf(address);
    const failures = this.#failures.get(key);
    if (failures === undefined) return;
    const leftMs = failures.until - this.#now();
    if (leftMs <= 0) this.#failures.delete(key);
    else if (failures.count >= this.#most) {
      throw new ProtocolError("RESOURCE_EXHAUSTED", "Too many failed logins from this address.", {
        retryAfter: Math.ceil(leftMs / 1_000),
      });
    }
  }

  count(address: string | undefined): void {
    if (address === undefined) return;
    const key = networkOf(address);
    const now = this.#now();
    const failures = this.#failures.get(key);
    this.#failures.delete(key);
    if (failures !== undefined && failures.until > now) failures.count++;
    // Those that failed last stand last.
    this.#failures.set(key, failures?.until !== undefined && failures.until > now ? failures : newFailures(now));
    if (this.#failures.size <= MOST) return;
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined) this.#failures.delete(oldest);
  }
}

function newFailures(now: number): Failures {
  return { count: 1, until: now + WINDOW_MS };
}
