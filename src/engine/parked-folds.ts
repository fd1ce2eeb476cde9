import type { TaskFold } from "../model/fold.ts";

const KEPT = 1_000;

/**
 * Tasks that wait for their caller, as they stood when they were parked, so that the next message need not read them
 * again. Only good for the number the store names; anything else is forgotten.
 */
export class ParkedFolds {
  readonly #folds = new Map<string, TaskFold>();

  put(fold: TaskFold): void {
    this.#folds.delete(fold.id);
    this.#folds.set(fold.id, fold);
    if (this.#folds.size <= KEPT) return;
    for (const oldest of this.#folds.keys()) {
      this.#folds.delete(oldest);
      return;
    }
  }

  take(id: string, number: number): TaskFold | undefined {
    const fold = this.#folds.get(id);
    if (fold === undefined) return undefined;
    this.#folds.delete(id);
    return fold.number === number ? fold : undefined;
  }
}
