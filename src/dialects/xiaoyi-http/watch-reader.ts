/** Whether whoever reads a stream stays to its end, and an answer that begins before there is anything to say. */
import type { StreamEvent } from "../../model/event.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import { DONE } from "../../wire/pipe-frames.ts";
import type { OpenedAnswer } from "./conversation.ts";

export interface ReaderWatch {
  /** What there was to see was seen. */
  readonly isFinished: () => boolean;
  /** The engine's id of the task; undefined before the first frame has come. */
  readonly taskId: () => string | undefined;
  readonly onFinished: (taskId: string) => void;
  readonly onDisconnected: (taskId: string) => void;
}

export function watchReader(source: FrameStream, attendance: ReaderWatch): FrameStream {
  return { [Symbol.asyncIterator]: () => new WatchedFrames(source[Symbol.asyncIterator](), attendance) };
}

/** Not a generator: `return` must take effect also while a `next` is waiting. */
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

  /** The first frame says which task it is. Whoever leaves sooner is told of it just as well. */
  async #leave(): Promise<void> {
    this.#left = true;
    try {
      while (this.#attendance.taskId() === undefined) {
        const { done } = await (this.#pending ?? this.#source.next());
        if (done === true) break;
      }
      await this.#source.return?.();
    } catch {
      // The message was refused, or its stream broke: nobody is there to be told so.
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

/** Begins at once, with nothing but that somebody is there. */
export function respondImmediately(answering: Promise<OpenedAnswer | undefined>): OpenedAnswer {
  let continues = false;
  const source = answering.then((answer) => {
    continues = answer?.continues === true;
    return answer?.frames[Symbol.asyncIterator]();
  });
  // Whoever reads is told; nobody may be there to do so.
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
