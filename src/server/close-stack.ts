/** Steps that close what was opened, last first: when the server closes, or at once if it fails to start. */
export class CloseStack {
  readonly #steps: (() => unknown)[] = [];

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Runs every step, also after one that failed; rejects with the first failure. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Runs the steps of a start-up. If one fails, what the others opened is closed before its error is passed on. */
export async function openAll<T>(open: (closing: CloseStack) => Promise<T>): Promise<T> {
  const closing = new CloseStack();
  try {
    return await open(closing);
  } catch (error) {
    // Why the server cannot start says more than what then failed to close.
    await closing.close().catch(() => {});
    throw error;
  }
}
