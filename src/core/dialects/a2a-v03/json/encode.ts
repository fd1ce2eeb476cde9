/** Encodes model values as 0.3 JSON, ready for `JSON.stringify`, which omits undefined members. */

import type { StreamEvent } from "../../../model/event.ts";
import { isDataPart, isRawPart, isTextPart, type Message, type Part } from "../../../model/message.ts";
import type { TaskPushNotificationConfig } from "../../../model/operation.ts";
import { type Artifact, isTerminal, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import type { PushEncoding } from "../../contract.ts";
import { toPushConfig } from "../../shared/legacy/encode.ts";
import { ROLE_NAMES, STATE_NAMES } from "../../shared/state-names.ts";
import { encodePartMetadata, wrapData } from "../parts.ts";

/** The whole task each time, in the JSON-RPC form even for configs registered over another binding. */
export const push: PushEncoding = {
  wholeTask: true,
  async encode(_, task) {
    return { contentType: "application/json", body: JSON.stringify(toWireTask(await task())) };
  },
};

function toWirePart(part: Part): object {
  if (isTextPart(part)) return { kind: "text", text: part.text, metadata: encodePartMetadata(part, false) };
  if (isDataPart(part)) {
    const { object, wrapped } = wrapData(part.data);
    return { kind: "data", data: object, metadata: encodePartMetadata(part, wrapped) };
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
    role: ROLE_NAMES[message.role],
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
    state: STATE_NAMES[state],
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
    artifacts: omitEmpty(task.artifacts)?.map(toWireArtifact),
    history: omitEmpty(task.history)?.map(toWireMessage),
    metadata: task.metadata,
  };
}

/** Empty lists are not written. */
function omitEmpty<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list;
}

/** Whether a stream ends with an event that sets this state. */
export type EndsStream = (state: TaskState) => boolean;

/** A stream opened by a message also ends when the task requires input. */
export const endsSendStream: EndsStream = (state) => state === "TASK_STATE_INPUT_REQUIRED" || isTerminal(state);

export const endsSubscription: EndsStream = isTerminal;

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

/** Without the task id, which is a sibling of the config. */
export function toWirePushConfig(config: TaskPushNotificationConfig): object {
  return { id: config.id, ...toPushConfig(config) };
}

export function toWireTaskPushConfig(config: TaskPushNotificationConfig, taskId: string): object {
  return { taskId, pushNotificationConfig: toWirePushConfig(config) };
}
