import type { TaskFold } from "../../model/fold.ts";

const MAX_FOLDS = 1_000;
/** Of all of them together. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Tasks that wait for their caller, as they stood when they were parked, so that the next message need not read them
 * again. Only good for the number the store names; anything else is forgotten.
 */
export class ParkedTasks {
  readonly #folds = new Map<string, { readonly fold: TaskFold; readonly bytes: number }>();
  #bytes = 0;

  /** `bytes`: what is kept of the task. */
  put(fold: TaskFold, bytes: number): void {
    this.#remove(fold.id);
    this.#folds.set(fold.id, { fold, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#folds.keys()) {
      if (this.#folds.size <= MAX_FOLDS && this.#bytes <= MAX_BYTES) return;
      this.#remove(oldest);
    }
  }

  take(id: string, number: number): TaskFold | undefined {
    const fold = this.#remove(id);
    return fold?.number === number ? fold : undefined;
  }

  #remove(id: string): TaskFold | undefined {
    const known = this.#folds.get(id);
    if (known === undefined) return undefined;
    this.#folds.delete(id);
    this.#bytes -= known.bytes;
    return known.fold;
  }
}
