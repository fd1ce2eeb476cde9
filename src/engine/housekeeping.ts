import type { EngineContext } from "./options.ts";

const AT_ONCE = 200;

/** Reduces the logs of tasks that ended long ago and deletes what nobody wants kept, a little at a time. */
export class Housekeeping {
  readonly #context: EngineContext;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#context.clock.after(this.#context.times.housekeepingMs, () => {
      this.tidy()
        .catch((error: unknown) => this.#context.log.warn({ err: error }, "Tidying up the store failed."))
        .finally(() => this.start());
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async tidy(): Promise<void> {
    const { store, clock, times } = this.#context;
    const now = clock.now();
    while (!this.#stopped && (await store.compact(now - times.compactAfterMs, AT_ONCE)) === AT_ONCE) await breathe();
    // Tasks may be kept for ever, but not the keys that have had their time: pruning forgets those too.
    const endedBefore = times.pruneAfterMs === undefined ? 0 : now - times.pruneAfterMs;
    while (!this.#stopped && (await store.prune(endedBefore, AT_ONCE)) === AT_ONCE) await breathe();
  }
}

/** Lets waiting requests in between two portions. */
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
