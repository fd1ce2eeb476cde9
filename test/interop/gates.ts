/** Agents wait at a gate until a scenario opens it: what must happen in an order is ordered by this, never by time. */
export class Gates {
  readonly #gates = new Map<string, PromiseWithResolvers>();

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

  #gate(name: string): PromiseWithResolvers {
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    const made = withResolvers();
    this.#gates.set(name, made);
    return made;
  }
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

function withResolvers(): PromiseWithResolvers {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
