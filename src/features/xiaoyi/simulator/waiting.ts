import type { Clock } from "../../../core/model/ports.ts";

interface Waiter {
  readonly condition: () => boolean;
  readonly resolve: () => void;
}

/** Waits for conditions, which are evaluated after every change. */
export class ChangeNotifier {
  readonly #waiters = new Set<Waiter>();

  waitUntil(condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.add({ condition, resolve });
    });
  }

  notify(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.condition()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

/** Rejects with the error if the work takes longer. */
export async function withTimeout<T>(
  clock: Clock,
  milliseconds: number,
  work: Promise<T>,
  toError: () => Error,
): Promise<T> {
  let stop = (): void => {};
  const late = new Promise<never>((_resolve, reject) => {
    stop = clock.after(milliseconds, () => reject(toError()));
  });
  return Promise.race([work, late]).finally(() => stop());
}

/**
 * Calls back once nothing was received for that long; returns a function that stops this. One timer, re-armed when it
 * fires: frames are far more frequent than timeouts.
 */
export function watchSilence(
  clock: Clock,
  silenceMs: number,
  lastReceivedAt: () => number,
  onSilence: () => void,
): () => void {
  if (silenceMs === Number.POSITIVE_INFINITY) return () => {};
  const check = (): void => {
    const rest = lastReceivedAt() + silenceMs - clock.now();
    if (rest > 0) stop = clock.after(rest, check);
    else onSilence();
  };
  let stop = clock.after(silenceMs, check);
  return () => stop();
}
