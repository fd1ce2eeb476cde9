/** Abort signals: joining several, and waiting that can be cut short. */
import { CarrierError } from "../wire/exchange.ts";

export interface JoinedSignal {
  readonly signal: AbortSignal;
  abort(): void;
  /** Lets go of the signals it listened to; they may live much longer than one call. */
  release(): void;
}

export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): JoinedSignal {
  const controller = new AbortController();
  const onAbort = (): void => abort();
  const release = (): void => {
    for (const signal of signals) signal?.removeEventListener("abort", onAbort);
  };
  const abort = (): void => {
    release();
    controller.abort();
  };
  if (signals.some((signal) => signal?.aborted)) abort();
  else for (const signal of signals) signal?.addEventListener("abort", onAbort, { once: true });
  return { signal: controller.signal, abort, release };
}

/** Rejects with an `aborted` CarrierError, as a call would. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => {
      clearTimeout(timer);
      reject(new CarrierError("aborted", "The wait was aborted"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", fail);
      resolve();
    }, milliseconds);
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
