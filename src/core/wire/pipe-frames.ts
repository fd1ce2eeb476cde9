/** A stream made of another: batches changed on their way, and a reader's leaving that reaches the source. */

export const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

interface Pipe<In, Out> {
  /** `end` makes this batch the last one, whatever the source has yet to give. */
  readonly map: (batch: In, end: () => void) => Out;
  /** One more batch, where the source ended by itself. */
  readonly atEnd?: (() => Out) | undefined;
  /** What the reader gets for an error of the source or of `map`. */
  readonly toError?: (error: unknown) => Error;
  /** Once, when no more batches come: the source ended or failed, or the reader left. */
  readonly onClose?: () => void;
}

/**
 * Not a generator: the `return` of one waits for a pending `next`, which may never come, and the reader's leaving must
 * reach the source at once.
 */
export function pipeFrames<In, Out>(
  source: AsyncIterator<In>,
  pipe: Pipe<In, Out>,
): AsyncIterableIterator<Out, undefined> {
  return new PipedFrames(source, pipe);
}

class PipedFrames<In, Out> implements AsyncIterableIterator<Out, undefined> {
  readonly #source: AsyncIterator<In>;
  readonly #pipe: Pipe<In, Out>;
  readonly #map: Pipe<In, Out>["map"];
  #ended = false;
  #closed = false;

  constructor(source: AsyncIterator<In>, pipe: Pipe<In, Out>) {
    this.#source = source;
    this.#pipe = pipe;
    this.#map = pipe.map;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Out, undefined>> {
    return this.#ended ? Promise.resolve(DONE) : this.#source.next().then(this.#onStep, this.#onFailure);
  }

  /** What goes wrong in the source after that concerns no reader. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#close();
    try {
      await this.#source.return?.();
    } catch {}
    return DONE;
  }

  readonly #onStep = (step: IteratorResult<In>): IteratorResult<Out, undefined> => {
    if (step.done === true) {
      const last = this.#ended ? undefined : this.#pipe.atEnd?.();
      this.#close();
      return last === undefined ? DONE : { done: false, value: last };
    }
    try {
      return { done: false, value: this.#map(step.value, this.#end) };
    } catch (error) {
      // A reader gives up on an error without a `return`, and the source would wait for it for ever.
      this.#end();
      return this.#onFailure(error);
    }
  };

  readonly #end = (): void => void this.return();

  readonly #onFailure = (error: unknown): never => {
    this.#close();
    throw this.#pipe.toError?.(error) ?? error;
  };

  #close(): void {
    this.#ended = true;
    if (this.#closed) return;
    this.#closed = true;
    this.#pipe.onClose?.();
  }
}
