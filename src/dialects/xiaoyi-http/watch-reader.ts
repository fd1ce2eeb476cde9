/** Detects whether the reader of a stream stays to its end, and begins responses before there is content. */
import type { StreamEvent } from "../../model/event.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import { DONE } from "../../wire/pipe-frames.ts";
import type { OpenedAnswer } from "./conversation.ts";

export interface ReaderWatch {
  /** Whether everything was delivered. */
  readonly isFinished: () => boolean;
  /** The engine's task id; undefined before the first frame has arrived. */
  readonly taskId: () => string | undefined;
  readonly onFinished: (taskId: string) => void;
  readonly onDisconnected: (taskId: string) => void;
}

export function watchReader(source: FrameStream, attendance: ReaderWatch): FrameStream {
  return { [Symbol.asyncIterator]: () => new WatchedFrames(source[Symbol.asyncIterator](), attendance) };
}

/** Not a generator: `return` must take effect even while a `next` is pending. */
class WatchedFrames implements AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #attendance: ReaderWatch;
  #pending: Promise<IteratorResult<readonly StreamFrame[]>> | undefined;
  #left = false;
  #judged = false;

  constructor(source: AsyncIterator<readonly StreamFrame[]>, attendance: ReaderWatch) {
    this.#source = source;
    this.#attendance = attendance;
  }

  async next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    this.#pending = this.#source.next();
    const result = await this.#pending;
    this.#pending = undefined;
    if (result.done !== true) return result;
    this.#judge();
    return DONE;
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#left) void this.#leave();
    return Promise.resolve(DONE);
  }

  /** The first frame identifies the task. A reader that leaves before it is notified all the same. */
  async #leave(): Promise<void> {
    this.#left = true;
    try {
      while (this.#attendance.taskId() === undefined) {
        const { done } = await (this.#pending ?? this.#source.next());
        if (done === true) break;
      }
      await this.#source.return?.();
    } catch {
      // The message was refused, or its stream failed: there is no reader left to report it to.
    }
    this.#judge();
  }

  #judge(): void {
    const { isFinished, onDisconnected, onFinished, taskId } = this.#attendance;
    const id = taskId();
    if (this.#judged || id === undefined) return;
    this.#judged = true;
    if (isFinished()) onFinished(id);
    else onDisconnected(id);
  }
}

export function taskIdOf(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}

/** Begins the response immediately, with no content but a sign of life. */
export function respondImmediately(answering: Promise<OpenedAnswer | undefined>): OpenedAnswer {
  let continues = false;
  const source = answering.then((answer) => {
    continues = answer?.continues === true;
    return answer?.frames[Symbol.asyncIterator]();
  });
  // The reader receives the error; there may be no reader.
  source.catch(() => {});
  let begun = false;
  return {
    get continues() {
      return continues;
    },
    frames: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          if (begun) return (await source)?.next() ?? DONE;
          begun = true;
          return { done: false, value: [WORKING_FRAME] };
        },
        async return() {
          const frames = await source.catch(() => undefined);
          await frames?.return?.();
          return DONE;
        },
      }),
    },
  };
}

const WORKING_FRAME: StreamFrame = {
  event: { statusUpdate: { taskId: "", contextId: "", status: { state: "TASK_STATE_WORKING" } } },
  json: "",
};
