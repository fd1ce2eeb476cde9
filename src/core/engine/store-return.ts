import { isTemporary } from "../model/errors.ts";
import type { Clock } from "../model/ports.ts";
import type { TaskStore } from "../store/contract.ts";

interface StoreReturnOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  /** How often it is looked whether the store is back. */
  readonly everyMs: number;
}

/** For reads that are worth waiting for while the store is away: of a stream that has begun, of a run. */
export class StoreReturn {
  readonly #options: StoreReturnOptions;
  #returning: Promise<void> | undefined;
  #closed = false;

  constructor(options: StoreReturnOptions) {
    this.#options = options;
  }

  /** Reads again when the store is back, unless the answer is not needed any more. */
  async retry<T>(read: () => Promise<T>, isNeeded: () => boolean = () => true): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!isTemporary(error) || this.#closed || !isNeeded()) throw error;
        this.#returning ??= this.#whenBack().finally(() => {
          this.#returning = undefined;
        });
        await this.#returning;
      }
    }
  }

  close(): void {
    this.#closed = true;
  }

  /** One looks for all of them: there may be ten thousand. */
  async #whenBack(): Promise<void> {
    const { clock, everyMs, store } = this.#options;
    while (!this.#closed) {
      await new Promise<void>((resolve) => {
        clock.after(everyMs, resolve);
      });
      const answered = await store.numbers([""]).then(
        () => true,
        (error: unknown) => !isTemporary(error),
      );
      if (answered) return;
    }
  }
}
