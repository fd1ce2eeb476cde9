/** When to try again: jittered exponential backoff, with injected clock and randomness. */

import type { Signal } from "./abort.ts";
import type { Clock } from "./ports.ts";

export interface BackoffPolicy {
  readonly baseMs: number;
  readonly capMs: number;
  /** Tries in a row before giving up; absent means never. */
  readonly maxTries?: number;
  /** A connection that held this long was a success, and counting starts again. */
  readonly resetAfterMs: number;
}

interface BackoffSources {
  /** In [0, 1), as `Math.random`. */
  readonly random: () => number;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now: () => number;
}

export interface Backoff {
  /** Delay before the next attempt; `undefined` if there is none. */
  next(): number | undefined;
  /** Called when a connection is open. Only if it holds for `resetAfterMs` until `next` is called are old tries forgotten. */
  markConnected(): void;
}

/**
 * How long to wait after a number of failures in a row: between half and all of a time that doubles up to the cap, so
 * that callers that failed together do not retry together, and a dead server is not overloaded. `chance` is in [0, 1].
 */
export function backoffDelay(failures: number, baseMs: number, capMs: number, chance: number): number {
  // Beyond any cap long before 2^1000, which still multiplies to a number and not to NaN.
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 1000));
  return Math.round(ceiling / 2 + (chance * ceiling) / 2);
}

export function createBackoff(policy: BackoffPolicy, sources: BackoffSources): Backoff {
  const { baseMs, capMs, maxTries = Number.POSITIVE_INFINITY, resetAfterMs } = policy;
  let tries = 0;
  let stableSince: number | undefined;

  return {
    next() {
      if (stableSince !== undefined && sources.now() - stableSince >= resetAfterMs) tries = 0;
      stableSince = undefined;
      if (tries >= maxTries) return undefined;
      tries++;
      return backoffDelay(tries, baseMs, capMs, sources.random());
    },
    markConnected() {
      stableSince ??= sources.now();
    },
  };
}

/** Rejects with the reason of the signal if that is aborted before. */
export function sleep(clock: Pick<Clock, "after">, milliseconds: number, signal?: Signal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}
