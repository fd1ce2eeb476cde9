/** Closes resources in reverse order: when the server closes, or at once if it fails to start. */
export class CloseStack {
  readonly #steps: (() => unknown)[] = [];

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Runs every step, even after a failure; rejects with the first error. */
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

/** Runs the steps of a start-up. If one fails, closes what the others opened and rethrows its error. */
export async function openAll<T>(open: (closing: CloseStack) => Promise<T>): Promise<T> {
  const closing = new CloseStack();
  try {
    return await open(closing);
  } catch (error) {
    // The error of the start is more useful than a later error of closing.
    await closing.close().catch(() => {});
    throw error;
  }
}
