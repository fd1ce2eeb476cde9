import type { FrameStream, Operation, Outcomes, StreamFrame } from "../../model/operation.ts";
import { pipeFrames } from "../../wire/pipe-frames.ts";

/**
 * A stream that reports the task id of its first frame, where a new task's id first appears. Reports once, even without
 * a frame.
 */
export function auditFrames(frames: FrameStream, onFirst: (taskId: string | undefined) => void): FrameStream {
  let isReported = false;
  const report = (taskId: string | undefined) => {
    if (!isReported) onFirst(taskId);
    isReported = true;
  };
  return pipeFrames(frames[Symbol.asyncIterator](), {
    map: (batch: readonly StreamFrame[]) => {
      if (!isReported) report(taskIdOf(batch[0]));
      return batch;
    },
    onClose: () => report(undefined),
  });
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

/** Assigns an id to a webhook that comes with a message: the response does not contain one, and the record needs it. */
export function assignPushConfigId<O extends Operation>(operation: O, nextId: () => string): O {
  if (operation.kind !== "send" && operation.kind !== "stream") return operation;
  const config = operation.configuration?.taskPushNotificationConfig;
  if (config === undefined || (config.id !== undefined && config.id !== "")) return operation;
  return {
    ...operation,
    configuration: { ...operation.configuration, taskPushNotificationConfig: { ...config, id: nextId() } },
  };
}

/** The subject named by the caller. */
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

/** Adds the ids that the operation created. */
export function subjectOfOutcome(
  requested: AuditSubject,
  kind: Operation["kind"],
  outcome: Outcomes[Operation["kind"]],
): AuditSubject {
  if (outcome === undefined) return requested;
  if (kind === "push-create" && "url" in outcome) return { ...requested, config: outcome.id };
  return "task" in outcome ? { ...requested, task: requested.task ?? outcome.task.id } : requested;
}
