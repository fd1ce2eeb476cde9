/** What callers wait for in a task. */
type TaskMilestone = "decided" | "settled" | "released" | "lost";

interface Waiter {
  readonly count: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** All that waits for something of one task. */
export class TaskWaiters {
  #calls: { readonly occasion: TaskMilestone; readonly call: () => void }[] = [];
  /** In the order of their counts. */
  #waiters: Waiter[] | undefined;

  on(occasion: TaskMilestone, call: () => void): void {
    this.#calls.push({ occasion, call });
  }

  waitFor(occasion: TaskMilestone): Promise<void> {
    return new Promise((resolve) => this.on(occasion, resolve));
  }

  /** Resolves when that many events are committed. */
  waitForCommit(count: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters ??= [];
      this.#waiters.push({ count, resolve, reject });
    });
  }

  notify(occasion: TaskMilestone): void {
    const calls = this.#calls;
    if (!calls.some((listener) => listener.occasion === occasion)) return;
    this.#calls = calls.filter((listener) => listener.occasion !== occasion);
    for (const listener of calls) if (listener.occasion === occasion) listener.call();
  }

  notifyCommitted(count: number): void {
    const waiters = this.#waiters;
    if (waiters === undefined) return;
    while (waiters.length > 0 && (waiters[0] as Waiter).count <= count) waiters.shift()?.resolve();
  }

  /** What was pushed and not committed never will be. */
  rejectCommits(error: Error): void {
    for (const waiter of this.#waiters?.splice(0) ?? []) waiter.reject(error);
  }

  notifyLost(error: Error): void {
    this.rejectCommits(error);
    this.notify("released");
    this.notify("settled");
    this.notify("lost");
  }
}
