import type { LogEntry } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import type { Task, TaskState } from "../../model/task.ts";
import { endsStream, type LogReader } from "./log-readers.ts";

interface LogStreamOptions {
  /** Frames that come before what the reader finds, e.g. the task as it stands. */
  readonly first?: StreamFrame;
  /** The reader stands at the end of a log that is closed. */
  readonly ended?: boolean;
  /** Newest messages to leave in the task a new task's log begins with; absent: all. */
  readonly historyLength?: number | undefined;
  readonly endOnInputRequired: boolean;
  readonly onEnd: () => void;
}

/**
 * A task's log as a stream. Not a generator: `return()` must take effect while a `next()` is waiting, or a caller that
 * went away would keep its place until the next event.
 */
export class LogStream implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #reader: LogReader;
  readonly #endOnInputRequired: boolean;
  readonly #historyLength: number | undefined;
  readonly #onEnd: () => void;
  #first: StreamFrame | undefined;
  #ended: boolean;
  #closed = false;

  constructor(reader: LogReader, options: LogStreamOptions) {
    this.#reader = reader;
    this.#endOnInputRequired = options.endOnInputRequired;
    this.#historyLength = options.historyLength;
    this.#onEnd = options.onEnd;
    this.#first = options.first;
    this.#ended = options.ended === true;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    if (this.#first !== undefined) {
      const value = [this.#first];
      this.#first = undefined;
      return Promise.resolve({ done: false, value });
    }
    return this.#ended ? this.return() : this.#reader.next().then(this.#toResult);
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#ended = true;
    this.#close();
    return Promise.resolve(DONE);
  }

  readonly #toResult = (
    entries: readonly LogEntry[] | undefined,
  ): IteratorResult<readonly StreamFrame[], undefined> => {
    if (entries === undefined) {
      this.#ended = true;
      this.#close();
      return DONE;
    }
    const end = entries.findIndex((entry) => endsStream(entry, this.#endOnInputRequired));
    const shown = end < 0 || end === entries.length - 1 ? entries : entries.slice(0, end + 1);
    if (end >= 0) {
      this.#ended = true;
      this.#close();
    }
    const trims = this.#historyLength !== undefined && shown[0]?.number === 1;
    return { done: false, value: trims ? trimHistory(shown, this.#historyLength as number) : shown };
  };

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.close();
    this.#onEnd();
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The log of a new task begins with the task; its caller may have asked for less of it. */
function trimHistory(frames: readonly StreamFrame[], historyLength: number): readonly StreamFrame[] {
  const [first, ...rest] = frames;
  if (first === undefined || !("task" in first.event)) return frames;
  const { history, ...task } = first.event.task;
  const kept = historyLength === 0 ? [] : (history ?? []).slice(-historyLength);
  return [toSnapshotFrame(kept.length === 0 ? task : { ...task, history: kept }, 1), ...rest];
}

/** A task as it stood at a number. */
export function toSnapshotFrame(task: Task, number: number): StreamFrame {
  const event = { task };
  return { number, event, json: JSON.stringify(event) };
}

/** The stream of an agent that answered without a task. */
export function toMessageStream(message: Message, onEnd: () => void): FrameStream {
  onEnd();
  const event = { message };
  return singleFrame({ event, json: JSON.stringify(event) });
}

async function* singleFrame(frame: StreamFrame): AsyncGenerator<readonly StreamFrame[]> {
  yield [frame];
}

/** Follows the log of a task until it comes to such a state. False if the reader was closed before, or the task is gone. */
export async function waitUntil(reader: LogReader, isReached: (state: TaskState) => boolean): Promise<boolean> {
  try {
    for (;;) {
      const entries = await reader.next();
      if (entries === undefined) return false;
      if (entries.some(({ state }) => state !== undefined && isReached(state))) return true;
    }
  } finally {
    reader.close();
  }
}

export async function closeReaderOnError<T>(promise: Promise<T>, reader: LogReader | undefined): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    reader?.close();
    throw error;
  }
}
