/** Shapes of 0.3 as values of the model. Requests are read strictly, answers (`reading.tolerant`) with good will. */

import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import { isObject } from "../../../model/json.ts";
import type { Message, Part, Role } from "../../../model/message.ts";
import type { AuthenticationInfo, TaskPushNotificationConfig } from "../../../model/operation.ts";
import { type Artifact, TASK_STATES, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import { LOSSES } from "../losses.ts";
import { readPart } from "../parts.ts";
import { decodeRole, decodeState, STATE_NAMES, UNKNOWN_STATE } from "./encode.ts";
import {
  flagIn,
  type JsonReading,
  listIn,
  type Members,
  memberOf,
  membersOf,
  readList,
  readMember,
  requiredTextIn,
  structIn,
  textIn,
  textsIn,
} from "./members.ts";

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };

/** A message without parts says nothing, except where a peer's answer would be lost over it. */
function partsIn(members: Members, reading: JsonReading): readonly Part[] {
  const value = memberOf(members, "parts", reading);
  if (!reading.tolerant) {
    if (value === undefined) reading.violateMember("parts", "is required");
    else if (Array.isArray(value) && value.length === 0) reading.violateMember("parts", "must not be empty");
  }
  return readMember(members, "parts", reading, (list) => readList(list, reading, readPart)) ?? [];
}

export function readMessage(value: unknown, reading: JsonReading): Message {
  const members = membersOf(value, reading);
  refuseOtherKind(members, "message", reading);
  const message: Writable<Message> = {
    messageId: messageIdIn(members, reading),
    role: roleIn(members, reading),
    parts: partsIn(members, reading),
  };
  const contextId = textIn(members, "contextId", reading);
  const taskId = textIn(members, "taskId", reading);
  const metadata = structIn(members, "metadata", reading);
  const extensions = textsIn(members, "extensions", reading);
  const referenceTaskIds = textsIn(members, "referenceTaskIds", reading);
  if (contextId !== undefined) message.contextId = contextId;
  if (taskId !== undefined) message.taskId = taskId;
  if (metadata !== undefined) message.metadata = metadata;
  if (extensions !== undefined) message.extensions = extensions;
  if (referenceTaskIds !== undefined) message.referenceTaskIds = referenceTaskIds;
  return message;
}

/** 0.2 and 0.3 require it of everyone; in an answer nothing depends on it. */
function messageIdIn(members: Members, reading: JsonReading): string {
  if (!reading.tolerant) return requiredTextIn(members, "messageId", reading);
  return textIn(members, "messageId", reading) ?? "";
}

function roleIn(members: Members, reading: JsonReading): Role {
  const word = memberOf(members, "role", reading);
  const role = decodeRole(word);
  if (role !== undefined) return role;
  if (!reading.tolerant) {
    reading.violateMember("role", word === undefined ? "is required" : "must be one of user, agent");
  } else if (word !== undefined) {
    reading.lose(LOSSES.unreadableRole, "role");
  }
  return "ROLE_AGENT";
}

function refuseOtherKind(members: Members, kind: string, reading: JsonReading): void {
  const said = memberOf(members, "kind", reading);
  if (said !== undefined && said !== kind) reading.violateMember("kind", `must be ${kind}`);
}

function readArtifact(value: unknown, reading: JsonReading): Artifact {
  const members = membersOf(value, reading);
  const artifact: Writable<Artifact> = {
    artifactId: requiredTextIn(members, "artifactId", reading),
    parts: partsIn(members, reading),
  };
  const name = textIn(members, "name", reading);
  const description = textIn(members, "description", reading);
  const metadata = structIn(members, "metadata", reading);
  const extensions = textsIn(members, "extensions", reading);
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  if (extensions !== undefined) artifact.extensions = extensions;
  return artifact;
}

function statusIn(members: Members, reading: JsonReading): TaskStatus {
  const status = readMember(members, "status", reading, readStatus);
  if (status === undefined) reading.violateMember("status", "is required");
  return status ?? { state: "TASK_STATE_SUBMITTED" };
}

function readStatus(value: unknown, reading: JsonReading): TaskStatus {
  const members = membersOf(value, reading);
  const status: Writable<TaskStatus> = { state: stateIn(members, reading) };
  const message = readMember(members, "message", reading, readMessage);
  const timestamp = timestampIn(members, reading);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

const KNOWN_STATES = TASK_STATES.map((state) => STATE_NAMES[state]).join(", ");

/** `unknown` is refused as 1.0 refuses its unspecified state: in the same words, so that callers can tell. */
function stateIn(members: Members, reading: JsonReading): TaskState {
  const word = memberOf(members, "state", reading);
  const state = decodeState(word);
  if (state !== undefined) return state;
  if (word === undefined) reading.violateMember("state", "is required");
  else reading.violateMember("state", word === UNKNOWN_STATE ? "must not be empty" : `must be one of ${KNOWN_STATES}`);
  return "TASK_STATE_SUBMITTED";
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(Z|z|[+-]\d\d:?\d\d)?$/;

/** The examples of 0.3 have no zone; they mean UTC. */
function timestampIn(members: Members, reading: JsonReading): string | undefined {
  const value = memberOf(members, "timestamp", reading);
  if (value === undefined) return undefined;
  const found = typeof value === "string" ? TIMESTAMP.exec(value) : null;
  const instant = found === null ? Number.NaN : Date.parse(found[1] === undefined ? `${found[0]}Z` : found[0]);
  if (!Number.isNaN(instant)) return new Date(instant).toISOString();
  reading.lose(LOSSES.unreadableTimestamp, "timestamp");
  return undefined;
}

export function readTask(value: unknown, reading: JsonReading): Task {
  const members = membersOf(value, reading);
  refuseOtherKind(members, "task", reading);
  const task: Writable<Task> = {
    id: requiredTextIn(members, "id", reading),
    contextId: textIn(members, "contextId", reading) ?? "",
    status: statusIn(members, reading),
  };
  const artifacts = listIn(members, "artifacts", reading, readArtifact);
  const history = listIn(members, "history", reading, readMessage);
  const metadata = structIn(members, "metadata", reading);
  if (artifacts !== undefined) task.artifacts = artifacts;
  if (history !== undefined) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

function readStatusUpdate(value: unknown, reading: JsonReading): TaskStatusUpdate {
  const members = membersOf(value, reading);
  const update: Writable<TaskStatusUpdate> = {
    taskId: requiredTextIn(members, "taskId", reading),
    contextId: textIn(members, "contextId", reading) ?? "",
    status: statusIn(members, reading),
  };
  const metadata = structIn(members, "metadata", reading);
  if (metadata !== undefined) update.metadata = metadata;
  return update;
}

function readArtifactUpdate(value: unknown, reading: JsonReading): TaskArtifactUpdate {
  const members = membersOf(value, reading);
  const artifact = readMember(members, "artifact", reading, readArtifact);
  if (artifact === undefined) reading.violateMember("artifact", "is required");
  const update: Writable<TaskArtifactUpdate> = {
    taskId: requiredTextIn(members, "taskId", reading),
    contextId: textIn(members, "contextId", reading) ?? "",
    artifact: artifact ?? { artifactId: "", parts: [] },
  };
  const metadata = structIn(members, "metadata", reading);
  if (flagIn(members, "append", reading) === true) update.append = true;
  if (flagIn(members, "lastChunk", reading) === true) update.lastChunk = true;
  if (metadata !== undefined) update.metadata = metadata;
  return update;
}

/** What a stream or a send answers with: told apart by `kind`, else by the members only one of them has. */
export function readEvent(value: unknown, reading: JsonReading): StreamEvent {
  const members = membersOf(value, reading);
  switch (memberOf(members, "kind", reading) ?? kindByShape(members)) {
    case "task":
      return { task: readTask(value, reading) };
    case "message":
      return { message: readMessage(value, reading) };
    case "status-update":
      return { statusUpdate: readStatusUpdate(value, reading) };
    case "artifact-update":
      return { artifactUpdate: readArtifactUpdate(value, reading) };
    default:
      reading.violateMember("kind", "must be one of task, message, status-update, artifact-update");
      return { message: { messageId: "", role: "ROLE_AGENT", parts: [] } };
  }
}

function kindByShape({ artifact, status, id, parts }: Members): string | undefined {
  if (isObject(artifact)) return "artifact-update";
  if (isObject(status)) return id === undefined ? "status-update" : "task";
  return Array.isArray(parts) ? "message" : undefined;
}

/** Without the task, which is named beside it. */
export function readPushConfig(value: unknown, reading: JsonReading): TaskPushNotificationConfig {
  const members = membersOf(value, reading);
  const config: Writable<TaskPushNotificationConfig> = { url: requiredTextIn(members, "url", reading) };
  const id = textIn(members, "id", reading);
  const token = textIn(members, "token", reading);
  const authentication = readMember(members, "authentication", reading, readAuthentication);
  if (id !== undefined) config.id = id;
  if (token !== undefined) config.token = token;
  if (authentication !== undefined) config.authentication = authentication;
  return config;
}

function readAuthentication(value: unknown, reading: JsonReading): AuthenticationInfo | undefined {
  const members = membersOf(value, reading);
  const [scheme, ...others] = textsIn(members, "schemes", reading) ?? [];
  const credentials = textIn(members, "credentials", reading);
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    reading.lose(LOSSES.pushSchemes, scheme === undefined ? "credentials" : "schemes");
  }
  if (scheme === undefined) return undefined;
  return credentials === undefined ? { scheme } : { scheme, credentials };
}
