import { ProtocolError } from "./errors.ts";

export type Signal = Abort | AbortSignal;

/**
 * A signal together with what aborts it, for calls that come by the thousand: an `AbortController` with a listener costs
 * as much as decoding a whole answer.
 */
export class Abort {
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

  addEventListener(_type: "abort", listener: () => void, _options?: { readonly once: boolean }): void {
    if (this.#aborted) return;
    this.#listeners ??= [];
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1;
    if (at >= 0) this.#listeners?.splice(at, 1);
  }
}

/** A signal of the platform that is aborted with this one. */
export function toAbortSignal(signal: Signal): AbortSignal {
  return signal instanceof Abort ? signal.platformSignal : signal;
}

/** Whether a run was only lost here: it is continued by another process, or by this one later, and so are its children. */
export function isRunLost({ reason }: Signal): boolean {
  return ProtocolError.is(reason) && reason.code === "UNAVAILABLE";
}
