interface Waiter {
  readonly isSo: () => boolean;
  readonly resolve: () => void;
}

/** Waiting for something to become true, looked at whenever something changed. */
export class Changes {
  readonly #waiters = new Set<Waiter>();

  until(isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.add({ isSo, resolve });
    });
  }

  happened(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.isSo()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
