/** A stream of frames in other words. */
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";

/**
 * What becomes of one frame goes into `into`: one frame, several or none. Their `json` is what will be written. True:
 * this was the last one, whatever the source has yet to say.
 */
type MapFrame = (frame: StreamFrame, into: StreamFrame[]) => boolean;

/** `atEnd` gives what is said where the source ends before its last frame was told. */
export function mapFrames(source: FrameStream, map: MapFrame, atEnd?: () => readonly StreamFrame[]): FrameStream {
  return { [Symbol.asyncIterator]: () => new MappedFrames(source[Symbol.asyncIterator](), map, atEnd) };
}

/** Not a generator: `return` must reach the source also while a `next` is waiting. */
class MappedFrames implements AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #map: MapFrame;
  readonly #atEnd: (() => readonly StreamFrame[]) | undefined;
  #ended = false;

  constructor(
    source: AsyncIterator<readonly StreamFrame[]>,
    map: MapFrame,
    atEnd: (() => readonly StreamFrame[]) | undefined,
  ) {
    this.#source = source;
    this.#map = map;
    this.#atEnd = atEnd;
  }

  next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    return this.#ended ? Promise.resolve(DONE) : this.#source.next().then(this.#toResult);
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.#source.return?.();
    return DONE;
  }

  readonly #toResult = (
    result: IteratorResult<readonly StreamFrame[]>,
  ): IteratorResult<readonly StreamFrame[], undefined> => {
    if (result.done === true) {
      if (this.#atEnd === undefined || this.#ended) return DONE;
      this.#ended = true;
      return { done: false, value: this.#atEnd() };
    }
    const mapped: StreamFrame[] = [];
    try {
      for (const frame of result.value) {
        this.#ended = this.#map(frame, mapped);
        if (this.#ended) {
          this.#source.return?.().catch(() => {});
          break;
        }
      }
    } catch (error) {
      // Whoever reads gives up on an error without a `return`, and the source would wait for it for ever.
      this.#source.return?.().catch(() => {});
      throw error;
    }
    return { done: false, value: mapped };
  };
}

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** A frame whose JSON is in the words of the dialect. */
export function withJson({ event, number }: StreamFrame, json: string): StreamFrame {
  return number === undefined ? { event, json } : { number, event, json };
}
