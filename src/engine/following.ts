import type { FrameStream, StreamFrame } from "../model/operation.ts";
import { STATE_CLASS } from "../model/state.ts";
import type { LiveTask } from "./live-task.ts";
import { endsStream, type LogReader } from "./readers.ts";

export interface FollowOptions {
  /** Frames that come before what the reader finds, e.g. the task as it stands. */
  readonly first?: StreamFrame;
  /** The reader stands at the end of a log that is closed. */
  readonly ended?: boolean;
  readonly endOnInputRequired: boolean;
  readonly onEnd: () => void;
}

/**
 * A task's log as a stream. Not a generator: `return()` must take effect while a `next()` is waiting, or a caller that
 * went away would keep its place until the next event.
 */
export class LogStream implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #reader: LogReader;
  readonly #options: FollowOptions;
  #first: StreamFrame | undefined;
  #ended: boolean;
  #closed = false;

  constructor(reader: LogReader, options: FollowOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#first = options.first;
    this.#ended = options.ended === true;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    if (this.#first !== undefined) {
      const value = [this.#first];
      this.#first = undefined;
      return { done: false, value };
    }
    if (this.#ended) return this.return();
    const entries = await this.#reader.next();
    if (entries === undefined) return this.return();
    const end = entries.findIndex((entry) => endsStream(entry, this.#options.endOnInputRequired));
    if (end < 0) return { done: false, value: entries };
    this.#ended = true;
    this.#close();
    return { done: false, value: end === entries.length - 1 ? entries : entries.slice(0, end + 1) };
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#ended = true;
    this.#close();
    return { done: true, value: undefined };
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.close();
    this.#options.onEnd();
  }
}

/** The one frame of an agent that answered without a task. */
export async function* singleFrame(frame: StreamFrame): AsyncGenerator<readonly StreamFrame[]> {
  yield [frame];
}

/**
 * Waits until the log says that the task is terminal or interrupted, and that it still is. Rejects if this process lost
 * the task on the way.
 */
export async function untilSettled(reader: LogReader, live: LiveTask | undefined): Promise<void> {
  live?.onLoss(() => reader.close());
  try {
    for (;;) {
      const entries = await reader.next();
      if (entries === undefined) break;
      const settled = entries.some((entry) => entry.state !== undefined && STATE_CLASS[entry.state] !== "active");
      if (settled && (live === undefined || STATE_CLASS[live.fold.status.state] !== "active")) return;
    }
  } finally {
    reader.close();
  }
  if (live?.loss !== undefined) throw live.loss;
}
