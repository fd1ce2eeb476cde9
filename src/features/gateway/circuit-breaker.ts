import { backoffDelay } from "../../core/model/backoff.ts";
import type { Clock } from "../../core/model/ports.ts";

export interface BreakerPolicy {
  /** Failures in a row after which calls are refused. */
  readonly threshold: number;
  /** Pause before the next attempt; doubles with every further failure, up to the cap. */
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * Refuses calls to a server that could not be reached several times in a row, so that they fail at once and the server is
 * not overloaded when it returns. After each pause one call is attempted; if it succeeds, all are.
 */
export class CircuitBreaker {
  readonly #policy: BreakerPolicy;
  readonly #clock: Pick<Clock, "now">;
  readonly #random: () => number;
  #failures = 0;
  #openUntil = 0;
  #isProbing = false;

  constructor(policy: BreakerPolicy, clock: Pick<Clock, "now">, random: () => number) {
    this.#policy = policy;
    this.#clock = clock;
    this.#random = random;
  }

  get isOpen(): boolean {
    return this.#failures >= this.#policy.threshold;
  }

  /** Returns 0 if a call may be attempted, whose outcome must be reported; otherwise the milliseconds to wait. */
  acquire(): number {
    if (!this.isOpen) return 0;
    const left = this.#openUntil - this.#clock.now();
    if (left > 0) return left;
    // Another call is being attempted; how long that takes is unknown.
    if (this.#isProbing) return this.#policy.baseMs;
    this.#isProbing = true;
    return 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#isProbing = false;
  }

  failed(): void {
    this.#failures++;
    this.#isProbing = false;
    if (!this.isOpen) return;
    const { baseMs, capMs, threshold } = this.#policy;
    const pause = backoffDelay(this.#failures - threshold + 1, baseMs, capMs, this.#random());
    this.#openUntil = this.#clock.now() + pause;
  }

  /** The attempt was given up by its caller, which shows nothing. */
  abandoned(): void {
    this.#isProbing = false;
  }
}
