import type * as v03 from "a2a-js-sdk-0.3";
import type { StreamEvent } from "../../src/core/model/event.ts";
import type { JsonObject, JsonValue } from "../../src/core/model/json.ts";
import { isDataPart, isRawPart, isTextPart, type Message, type Part } from "../../src/core/model/message.ts";
import {
  type Artifact,
  isInterrupted,
  isTerminal,
  TASK_STATES,
  type Task,
  type TaskState,
  type TaskStatus,
} from "../../src/core/model/task.ts";

/** The model in the words of the 0.3 SDK and back: written apart from our dialect, so that the two can disagree. */

export type V03Event = v03.Message | v03.Task | v03.TaskStatusUpdateEvent | v03.TaskArtifactUpdateEvent;

function toV03Part(part: Part): v03.Part {
  if (isTextPart(part)) return { kind: "text", text: part.text };
  if (isDataPart(part)) return { kind: "data", data: part.data as JsonObject };
  const head = {
    ...(part.filename === undefined ? {} : { name: part.filename }),
    ...(part.mediaType === undefined ? {} : { mimeType: part.mediaType }),
  };
  return { kind: "file", file: isRawPart(part) ? { bytes: part.raw, ...head } : { uri: part.url, ...head } };
}

function fromV03Part(part: v03.Part): Part {
  if (part.kind === "text") return { text: part.text };
  if (part.kind === "data") return { data: part.data as JsonValue };
  const { file } = part;
  const head = {
    ...(file.name ? { filename: file.name } : {}),
    ...(file.mimeType ? { mediaType: file.mimeType } : {}),
  };
  return "bytes" in file ? { raw: file.bytes, ...head } : { url: file.uri, ...head };
}

export function toV03Message(message: Message): v03.Message {
  return {
    kind: "message",
    messageId: message.messageId,
    role: message.role === "ROLE_USER" ? "user" : "agent",
    parts: message.parts.map(toV03Part),
    ...(message.taskId === undefined ? {} : { taskId: message.taskId }),
    ...(message.contextId === undefined ? {} : { contextId: message.contextId }),
  };
}

export function fromV03Message(message: v03.Message): Message {
  return {
    messageId: message.messageId,
    role: message.role === "user" ? "ROLE_USER" : "ROLE_AGENT",
    parts: message.parts.map(fromV03Part),
    ...(message.taskId ? { taskId: message.taskId } : {}),
    ...(message.contextId ? { contextId: message.contextId } : {}),
  };
}

export function fromV03Task(task: v03.Task): Task {
  return {
    id: task.id,
    contextId: task.contextId,
    status: fromV03Status(task.status),
    artifacts: (task.artifacts ?? []).map(fromV03Artifact),
    history: (task.history ?? []).map(fromV03Message),
  };
}

export function fromV03Event(event: V03Event): StreamEvent {
  if (event.kind === "message") return { message: fromV03Message(event) };
  if (event.kind === "task") return { task: fromV03Task(event) };
  const { contextId, taskId } = event;
  if (event.kind === "status-update")
    return { statusUpdate: { taskId, contextId, status: fromV03Status(event.status) } };
  const { append = false, artifact, lastChunk = false } = event;
  return { artifactUpdate: { taskId, contextId, artifact: fromV03Artifact(artifact), append, lastChunk } };
}

export function toV03Event(event: StreamEvent): V03Event {
  if ("message" in event) return toV03Message(event.message);
  if ("task" in event) {
    const { artifacts = [], contextId, history = [], id, status } = event.task;
    return {
      kind: "task",
      id,
      contextId,
      status: toV03Status(status),
      artifacts: artifacts.map(toV03Artifact),
      history: history.map(toV03Message),
    };
  }
  if ("statusUpdate" in event) {
    const { contextId, status, taskId } = event.statusUpdate;
    const final = isTerminal(status.state) || isInterrupted(status.state);
    return { kind: "status-update", taskId, contextId, status: toV03Status(status), final };
  }
  const { append = false, artifact, contextId, lastChunk = false, taskId } = event.artifactUpdate;
  return { kind: "artifact-update", taskId, contextId, artifact: toV03Artifact(artifact), append, lastChunk };
}

function toV03Artifact({ artifactId, name, parts }: Artifact): v03.Artifact {
  return { artifactId, ...(name === undefined ? {} : { name }), parts: parts.map(toV03Part) };
}

function fromV03Artifact({ artifactId, name, parts }: v03.Artifact): Artifact {
  return { artifactId, ...(name === undefined ? {} : { name }), parts: parts.map(fromV03Part) };
}

function toV03Status({ message, state, timestamp }: TaskStatus): v03.TaskStatus {
  return {
    state: toV03State(state),
    ...(message === undefined ? {} : { message: toV03Message(message) }),
    ...(timestamp === undefined ? {} : { timestamp }),
  };
}

function fromV03Status({ message, state, timestamp }: v03.TaskStatus): TaskStatus {
  return {
    state: fromV03State(state),
    ...(message === undefined ? {} : { message: fromV03Message(message) }),
    ...(timestamp === undefined ? {} : { timestamp }),
  };
}

function toV03State(state: TaskState): v03.TaskState {
  return state.slice("TASK_STATE_".length).toLowerCase().replace("_", "-") as v03.TaskState;
}

function fromV03State(state: v03.TaskState): TaskState {
  const found = TASK_STATES.find((known) => toV03State(known) === state);
  if (found === undefined) throw new Error(`"${state}" is no state of 0.3.`);
  return found;
}
