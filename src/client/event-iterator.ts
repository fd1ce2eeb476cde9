/** Batches inside, single events at the edge: a promise is only made where one is asked for. */

/** Leaving it early calls `abandon` first, so that a read that is under way ends at once. */
export function eventIterator<T>(
  batches: AsyncGenerator<readonly T[], void, undefined>,
  abandon: () => void,
): AsyncIterableIterator<T> {
  let batch: readonly T[] = [];
  let at = 0;
  let finished = false;
  let pulling: Promise<void> | undefined;

  async function pull(): Promise<void> {
    try {
      const { done, value } = await batches.next();
      batch = done === true ? [] : value;
      at = 0;
      if (done === true) finished = true;
    } catch (error) {
      const left = finished;
      finished = true;
      if (!left) throw error;
    } finally {
      pulling = undefined;
    }
  }

  async function nextAfterPull(): Promise<IteratorResult<T, undefined>> {
    while (at >= batch.length && !finished) {
      pulling ??= pull();
      await pulling;
    }
    return take();
  }

  function take(): IteratorResult<T, undefined> {
    if (at >= batch.length || finished) return { done: true, value: undefined };
    return { done: false, value: batch[at++] as T };
  }

  return {
    next() {
      return at < batch.length || finished ? Promise.resolve(take()) : nextAfterPull();
    },
    async return() {
      finished = true;
      abandon();
      await batches.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
