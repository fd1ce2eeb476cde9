/** What others wait for in a task. */
export type Occasion = "decided" | "settled" | "released" | "lost";

interface Waiter {
  readonly count: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Those who wait for something of one task. */
export class Listeners {
  #calls: { readonly occasion: Occasion; readonly call: () => void }[] = [];
  /** In the order of their counts. */
  #waiters: Waiter[] | undefined;

  on(occasion: Occasion, call: () => void): void {
    this.#calls.push({ occasion, call });
  }

  until(occasion: Occasion): Promise<void> {
    return new Promise((resolve) => this.on(occasion, resolve));
  }

  /** Resolves when that many events are committed. */
  untilCommitted(count: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters ??= [];
      this.#waiters.push({ count, resolve, reject });
    });
  }

  tell(occasion: Occasion): void {
    const calls = this.#calls;
    if (calls.length === 0) return;
    this.#calls = calls.filter((listener) => listener.occasion !== occasion);
    for (const listener of calls) if (listener.occasion === occasion) listener.call();
  }

  committed(count: number): void {
    const waiters = this.#waiters;
    if (waiters === undefined) return;
    while (waiters.length > 0 && (waiters[0] as Waiter).count <= count) waiters.shift()?.resolve();
  }

  lost(error: Error): void {
    for (const waiter of this.#waiters?.splice(0) ?? []) waiter.reject(error);
    this.tell("released");
    this.tell("settled");
    this.tell("lost");
  }
}
