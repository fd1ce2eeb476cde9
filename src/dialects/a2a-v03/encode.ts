/** Values of the model in the shapes of 0.3, ready for `JSON.stringify`, which leaves out what is undefined. */
import type { Artifact } from "../../model/artifact.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import { isDataPart, isRawPart, isTextPart, type Part } from "../../model/part.ts";
import type { TaskPushNotificationConfig } from "../../model/push.ts";
import { isTerminal, type TaskState } from "../../model/state.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { metadataOnWire, toDataObject } from "./part-extension.ts";
import { WORD_OF_ROLE, WORD_OF_STATE } from "./states.ts";

function toWirePart(part: Part): object {
  if (isTextPart(part)) return { kind: "text", text: part.text, metadata: metadataOnWire(part, false) };
  if (isDataPart(part)) {
    const { object, wrapped } = toDataObject(part.data);
    return { kind: "data", data: object, metadata: metadataOnWire(part, wrapped) };
  }
  const { filename, mediaType, metadata } = part;
  return isRawPart(part)
    ? { kind: "file", file: { bytes: part.raw, name: filename, mimeType: mediaType }, metadata }
    : { kind: "file", file: { uri: part.url, name: filename, mimeType: mediaType }, metadata };
}

export function toWireMessage(message: Message): object {
  return {
    kind: "message",
    messageId: message.messageId,
    contextId: message.contextId,
    taskId: message.taskId,
    role: WORD_OF_ROLE[message.role],
    parts: message.parts.map(toWirePart),
    metadata: message.metadata,
    extensions: message.extensions,
    referenceTaskIds: message.referenceTaskIds,
  };
}

function toWireArtifact(artifact: Artifact): object {
  return {
    artifactId: artifact.artifactId,
    name: artifact.name,
    description: artifact.description,
    parts: artifact.parts.map(toWirePart),
    metadata: artifact.metadata,
    extensions: artifact.extensions,
  };
}

function toWireStatus({ state, message, timestamp }: TaskStatus): object {
  return {
    state: WORD_OF_STATE[state],
    message: message === undefined ? undefined : toWireMessage(message),
    timestamp,
  };
}

/** Also the body of a webhook. */
export function toWireTask(task: Task): object {
  return {
    kind: "task",
    id: task.id,
    contextId: task.contextId,
    status: toWireStatus(task.status),
    artifacts: filled(task.artifacts)?.map(toWireArtifact),
    history: filled(task.history)?.map(toWireMessage),
    metadata: task.metadata,
  };
}

/** Empty lists are not written. */
function filled<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list;
}

/** Whether a stream ends with an event that brought the task to a state. */
export type EndsStream = (state: TaskState) => boolean;

/** A stream that was opened by a message waits for no further one. */
export const endsAnswer: EndsStream = (state) => state === "TASK_STATE_INPUT_REQUIRED" || isTerminal(state);

export const endsTask: EndsStream = isTerminal;

export function toWireEvent(event: StreamEvent, ends: EndsStream): object {
  if ("artifactUpdate" in event) {
    const { taskId, contextId, artifact, append, lastChunk, metadata } = event.artifactUpdate;
    return {
      kind: "artifact-update",
      taskId,
      contextId,
      artifact: toWireArtifact(artifact),
      append,
      lastChunk,
      metadata,
    };
  }
  if ("statusUpdate" in event) {
    const { taskId, contextId, status, metadata } = event.statusUpdate;
    const final = ends(status.state);
    return { kind: "status-update", taskId, contextId, status: toWireStatus(status), final, metadata };
  }
  return "task" in event ? toWireTask(event.task) : toWireMessage(event.message);
}

/** Without the task, which is named beside it. */
export function toWirePushConfig({ id, url, token, authentication }: TaskPushNotificationConfig): object {
  return {
    id,
    url,
    token: token === "" ? undefined : token,
    authentication:
      authentication === undefined
        ? undefined
        : { schemes: [authentication.scheme], credentials: authentication.credentials },
  };
}

export function toWireTaskPushConfig(config: TaskPushNotificationConfig, taskId: string): object {
  return { taskId, pushNotificationConfig: toWirePushConfig(config) };
}
