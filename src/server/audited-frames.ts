import type { FrameStream, StreamFrame } from "../model/operation.ts";

/** A stream whose first frame is looked at: only it says which task a new message made. Told once, also if none comes. */
export class AuditedFrames implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #frames: AsyncIterator<readonly StreamFrame[]>;
  #tell: ((taskId: string | undefined) => void) | undefined;

  constructor(frames: FrameStream, tell: (taskId: string | undefined) => void) {
    this.#frames = frames[Symbol.asyncIterator]();
    this.#tell = tell;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    const step = this.#frames.next();
    if (this.#tell === undefined) return step;
    return step.then((result) => {
      this.#told(result.done === true ? undefined : taskIdOf(result.value[0]));
      return result;
    });
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#told(undefined);
    await this.#frames.return?.();
    return { done: true, value: undefined };
  }

  #told(taskId: string | undefined): void {
    this.#tell?.(taskId);
    this.#tell = undefined;
  }
}

function taskIdOf(frame: StreamFrame | undefined): string | undefined {
  if (frame === undefined) return undefined;
  const { event } = frame;
  if ("task" in event) return event.task.id;
  if ("statusUpdate" in event) return event.statusUpdate.taskId;
  return "artifactUpdate" in event ? event.artifactUpdate.taskId : undefined;
}
