/** What is read of an `AbortSignal`, which is one of these. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * A signal together with what aborts it, for calls that come by the thousand: an `AbortController` with a listener costs
 * as much as decoding a whole answer.
 */
export class Abort implements Signal {
  #aborted = false;
  #reason: unknown;
  #listeners: (() => void)[] | undefined;
  #controller: AbortController | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** For those that need a signal of the platform. */
  get platformSignal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The first reason counts. Each listener is called once. */
  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    // One after the other, because each may remove those that follow.
    for (let next = this.#listeners?.shift(); next !== undefined; next = this.#listeners?.shift()) next();
    this.#controller?.abort(reason);
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#aborted) return;
    this.#listeners ??= [];
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1;
    if (at >= 0) this.#listeners?.splice(at, 1);
  }
}

export function toAbortSignal(signal: Signal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  if (signal instanceof Abort) return signal.platformSignal;
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}
