import type { StreamEvent } from "../../../src/core/model/event.ts";
import type { Message, Part } from "../../../src/core/model/message.ts";
import type { Artifact, Task, TaskStatus } from "../../../src/core/model/task.ts";
import { wordOf } from "./schema.ts";

/** `JSON.stringify` leaves out what is undefined. */
function partOf(part: Part): object {
  const beside = { file: part.filename, kind: part.mediaType, meta: part.metadata };
  if ("text" in part) return { w: part.text, ...beside };
  if ("raw" in part) return { b: part.raw, ...beside };
  return "url" in part ? { u: part.url, ...beside } : { d: part.data, ...beside };
}

export function messageOf(message: Message): object {
  return {
    mid: message.messageId,
    by: message.role === "ROLE_USER" ? "user" : "agent",
    say: message.parts.map(partOf),
    session: message.contextId,
    job: message.taskId,
    meta: message.metadata,
    plus: message.extensions,
    about: message.referenceTaskIds,
  };
}

function statusOf({ state, message, timestamp }: TaskStatus): object {
  return { is: wordOf(state), said: message === undefined ? undefined : messageOf(message), at: timestamp };
}

function artifactOf({ artifactId, name, description, parts, metadata, extensions }: Artifact): object {
  return { key: artifactId, name, about: description, say: parts.map(partOf), meta: metadata, plus: extensions };
}

export function taskOf(task: Task): object {
  return {
    job: task.id,
    session: task.contextId,
    now: statusOf(task.status),
    made: task.artifacts?.map(artifactOf),
    talk: task.history?.map(messageOf),
    meta: task.metadata,
  };
}

export function eventOf(event: StreamEvent): object {
  if ("task" in event) return { task: taskOf(event.task) };
  if ("message" in event) return { message: messageOf(event.message) };
  if ("statusUpdate" in event) {
    const { taskId, contextId, status, metadata } = event.statusUpdate;
    return { moved: { job: taskId, session: contextId, now: statusOf(status), meta: metadata } };
  }
  const { taskId, contextId, artifact, append, lastChunk, metadata } = event.artifactUpdate;
  const of = artifactOf(artifact);
  const flags = { more: append === true ? true : undefined, last: lastChunk === true ? true : undefined };
  return { piece: { job: taskId, session: contextId, of, ...flags, meta: metadata } };
}
