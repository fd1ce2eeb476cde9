import type { FrameStream, Operation, Outcomes, StreamFrame } from "../../model/operation.ts";

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

/** What an operation is about, as far as it is known. */
export interface AuditSubject {
  readonly task: string | undefined;
  /** Id of a push config. */
  readonly config: string | undefined;
}

/** A webhook that comes with a message is registered without an answer that names it; the record is to name it. */
export function assignPushConfigId<O extends Operation>(operation: O, nextId: () => string): O {
  if (operation.kind !== "send" && operation.kind !== "stream") return operation;
  const config = operation.configuration?.taskPushNotificationConfig;
  if (config === undefined || (config.id !== undefined && config.id !== "")) return operation;
  return {
    ...operation,
    configuration: { ...operation.configuration, taskPushNotificationConfig: { ...config, id: nextId() } },
  };
}

/** What the caller named. */
export function subjectOfRequest(operation: Operation): AuditSubject {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { message, chosenId, configuration } = operation;
      return { task: message.taskId ?? chosenId, config: configuration?.taskPushNotificationConfig?.id };
    }
    case "get":
    case "cancel":
    case "subscribe":
      return { task: operation.id, config: undefined };
    case "push-create":
      return { task: operation.taskId, config: operation.config.id };
    case "push-get":
    case "push-delete":
      return { task: operation.taskId, config: operation.id };
    case "push-list":
      return { task: operation.taskId, config: undefined };
    case "list":
    case "extended-card":
      return { task: undefined, config: undefined };
  }
}

/** What came into being, where the caller named nothing. */
export function subjectOfOutcome(
  asked: AuditSubject,
  kind: Operation["kind"],
  outcome: Outcomes[Operation["kind"]],
): AuditSubject {
  if (outcome === undefined) return asked;
  if (kind === "push-create" && "url" in outcome) return { ...asked, config: outcome.id };
  return "task" in outcome ? { ...asked, task: asked.task ?? outcome.task.id } : asked;
}
