/**
 * How work ends early. `leave`: the tasks of the steps continue, and a later turn takes them up again. `stop`: they are
 * cancelled. `lose`: another process takes them up, so that nothing is waited for.
 */
export type HaltReason = "leave" | "stop" | "lose";

/** Thrown by what was halted; the reason is that of its scope. */
export class HaltedError extends Error {
  override readonly name = "HaltedError";
}

/** What can be ended together: a run, or one of its sub-workflows. Ending it ends what is inside it, too. */
export class HaltScope {
  #reason: HaltReason | undefined;
  readonly #listeners = new Set<(reason: HaltReason) => void>();

  get reason(): HaltReason | undefined {
    return this.#reason;
  }

  throwIfHalted(): void {
    if (this.#reason !== undefined) throw new HaltedError("The run has ended.");
  }

  /** The first reason counts. */
  halt(reason: HaltReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    for (const listener of [...this.#listeners]) listener(reason);
  }

  /** Calls the listener once, at once if it is too late. Returns how to forget it. */
  onHalt(listener: (reason: HaltReason) => void): () => void {
    if (this.#reason !== undefined) {
      listener(this.#reason);
      return () => {};
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A scope inside this one, and how to release it when it is over. */
  nest(): { readonly scope: HaltScope; readonly release: () => void } {
    const scope = new HaltScope();
    return { scope, release: this.onHalt((reason) => scope.halt(reason)) };
  }
}
