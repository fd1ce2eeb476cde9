import { createDeferred } from "../../src/core/wire/link.ts";

type Deferred = ReturnType<typeof createDeferred>;

/** Agents wait at a gate until a scenario opens it: what must happen in an order is ordered by this, never by time. */
export class Gates {
  readonly #gates = new Map<string, Deferred>();

  /** Resolves once the gate is open, or rejects when the signal says to stop waiting. */
  passed(name: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => reject(new Error("The wait was cut short."));
      if (signal.aborted) return stop();
      signal.addEventListener("abort", stop, { once: true });
      void this.#gate(name).promise.then(resolve);
    });
  }

  open(name: string): void {
    this.#gate(name).resolve();
  }

  #gate(name: string): Deferred {
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    const made = createDeferred();
    this.#gates.set(name, made);
    return made;
  }
}
