/** Whether whoever reads a stream stays to its end, and an answer that begins before there is anything to say. */
import type { StreamEvent } from "../../model/event.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import type { Answering } from "./conversation.ts";

export interface Attendance {
  /** What there was to see was seen. */
  readonly isOver: () => boolean;
  /** The engine's id of the task; undefined before the first frame has come. */
  readonly taskId: () => string | undefined;
  readonly onSeen: (taskId: string) => void;
  readonly onLeft: (taskId: string) => void;
}

export function attended(source: FrameStream, attendance: Attendance): FrameStream {
  return { [Symbol.asyncIterator]: () => new AttendedFrames(source[Symbol.asyncIterator](), attendance) };
}

/** Not a generator: `return` must take effect also while a `next` is waiting. */
class AttendedFrames implements AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #attendance: Attendance;
  #pending: Promise<IteratorResult<readonly StreamFrame[]>> | undefined;
  #left = false;
  #judged = false;

  constructor(source: AsyncIterator<readonly StreamFrame[]>, attendance: Attendance) {
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
    const { isOver, onLeft, onSeen, taskId } = this.#attendance;
    const id = taskId();
    if (this.#judged || id === undefined) return;
    this.#judged = true;
    if (isOver()) onSeen(id);
    else onLeft(id);
  }
}

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

export function taskIdIn(event: StreamEvent): string | undefined {
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}

/** Begins at once, with nothing but that somebody is there. */
export function soon(answering: Promise<Answering | undefined>): Answering {
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
          return { done: false, value: [AT_WORK] };
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

const AT_WORK: StreamFrame = {
  event: { statusUpdate: { taskId: "", contextId: "", status: { state: "TASK_STATE_WORKING" } } },
  json: "",
};
