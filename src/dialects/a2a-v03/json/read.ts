/** Decodes the JSON of 0.3 to model values: requests strictly, responses (`reading.tolerant`) leniently. */

import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import { isObject, type Writable } from "../../../model/json.ts";
import type { Message, Role } from "../../../model/message.ts";
import type { AuthenticationInfo, TaskPushNotificationConfig } from "../../../model/operation.ts";
import { type Artifact, TASK_STATES, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import type { Members } from "../../shared/json-members.ts";
import { decodeRole, decodeState, STATE_NAMES, UNKNOWN_STATE } from "../../shared/state-names.ts";
import { LOSSES } from "../losses.ts";
import { readPart } from "../parts.ts";

export function readMessage(members: Members): Message {
  refuseOtherKind(members, "message");
  const message: Writable<Message> = {
    messageId: messageIdIn(members),
    role: roleIn(members),
    parts: members.requiredList("parts", readPart),
  };
  const contextId = members.text("contextId");
  const taskId = members.text("taskId");
  const metadata = members.struct("metadata");
  const extensions = members.texts("extensions");
  const referenceTaskIds = members.texts("referenceTaskIds");
  if (contextId !== undefined) message.contextId = contextId;
  if (taskId !== undefined) message.taskId = taskId;
  if (metadata !== undefined) message.metadata = metadata;
  if (extensions !== undefined) message.extensions = extensions;
  if (referenceTaskIds !== undefined) message.referenceTaskIds = referenceTaskIds;
  return message;
}

/** Required by 0.2 and 0.3 in both directions; in a response nothing depends on it. */
function messageIdIn(members: Members): string {
  if (!members.reading.tolerant) return members.requiredText("messageId");
  return members.text("messageId") ?? "";
}

function roleIn(members: Members): Role {
  const name = members.raw("role");
  const role = decodeRole(name);
  if (role !== undefined) return role;
  if (!members.reading.tolerant) {
    members.violateMember("role", name === undefined ? "is required" : "must be one of user, agent");
  } else if (name !== undefined) {
    members.reading.lose(LOSSES.unreadableRole, "role");
  }
  return "ROLE_AGENT";
}

function refuseOtherKind(members: Members, kind: string): void {
  const received = members.raw("kind");
  if (received !== undefined && received !== kind) members.violateMember("kind", `must be ${kind}`);
}

function readArtifact(members: Members): Artifact {
  const artifact: Writable<Artifact> = {
    artifactId: members.requiredText("artifactId"),
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  const extensions = members.texts("extensions");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  if (extensions !== undefined) artifact.extensions = extensions;
  return artifact;
}

function readStatus(members: Members): TaskStatus {
  const status: Writable<TaskStatus> = { state: stateIn(members) };
  const message = members.object("message", readMessage);
  const timestamp = timestampIn(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

const KNOWN_STATES = TASK_STATES.map((state) => STATE_NAMES[state]).join(", ");

/** `unknown` is refused like the unspecified state of 1.0, with the same message, so that callers can recognise it. */
function stateIn(members: Members): TaskState {
  const name = members.raw("state");
  const state = decodeState(name);
  if (state !== undefined) return state;
  if (name === undefined) members.violateMember("state", "is required");
  else members.violateMember("state", name === UNKNOWN_STATE ? "must not be empty" : `must be one of ${KNOWN_STATES}`);
  return "TASK_STATE_SUBMITTED";
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(Z|z|[+-]\d\d:?\d\d)?$/;

/** The examples of 0.3 have no time zone; they mean UTC. */
function timestampIn(members: Members): string | undefined {
  const value = members.raw("timestamp");
  if (value === undefined) return undefined;
  const found = typeof value === "string" ? TIMESTAMP.exec(value) : null;
  const instant = found === null ? Number.NaN : Date.parse(found[1] === undefined ? `${found[0]}Z` : found[0]);
  if (!Number.isNaN(instant)) return new Date(instant).toISOString();
  members.reading.lose(LOSSES.unreadableTimestamp, "timestamp");
  return undefined;
}

export function readTask(members: Members): Task {
  refuseOtherKind(members, "task");
  const task: Writable<Task> = {
    id: members.requiredText("id"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
  };
  const artifacts = members.list("artifacts", readArtifact);
  const history = members.list("history", readMessage);
  const metadata = members.struct("metadata");
  if (artifacts !== undefined) task.artifacts = artifacts;
  if (history !== undefined) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

function readStatusUpdate(members: Members): TaskStatusUpdate {
  const update: Writable<TaskStatusUpdate> = {
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
  };
  const metadata = members.struct("metadata");
  if (metadata !== undefined) update.metadata = metadata;
  return update;
}

function readArtifactUpdate(members: Members): TaskArtifactUpdate {
  const update: Writable<TaskArtifactUpdate> = {
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    artifact: members.requiredObject("artifact", readArtifact),
  };
  const metadata = members.struct("metadata");
  if (members.flag("append") === true) update.append = true;
  if (members.flag("lastChunk") === true) update.lastChunk = true;
  if (metadata !== undefined) update.metadata = metadata;
  return update;
}

/** The result of a stream or a send, distinguished by `kind`, else by the members that only one of them has. */
export function readEvent(members: Members): StreamEvent {
  switch (members.raw("kind") ?? kindByShape(members)) {
    case "task":
      return { task: readTask(members) };
    case "message":
      return { message: readMessage(members) };
    case "status-update":
      return { statusUpdate: readStatusUpdate(members) };
    case "artifact-update":
      return { artifactUpdate: readArtifactUpdate(members) };
    default:
      members.violateMember("kind", "must be one of task, message, status-update, artifact-update");
      return { message: { messageId: "", role: "ROLE_AGENT", parts: [] } };
  }
}

function kindByShape(members: Members): string | undefined {
  if (isObject(members.raw("artifact"))) return "artifact-update";
  if (isObject(members.raw("status"))) return members.raw("id") === undefined ? "status-update" : "task";
  return Array.isArray(members.raw("parts")) ? "message" : undefined;
}

/** Without the task id, which is a sibling of the config. */
export function readPushConfig(members: Members): TaskPushNotificationConfig {
  const config: Writable<TaskPushNotificationConfig> = { url: members.requiredText("url") };
  const id = members.text("id");
  const token = members.text("token");
  const authentication = members.object("authentication", readAuthentication);
  if (id !== undefined) config.id = id;
  if (token !== undefined) config.token = token;
  if (authentication !== undefined) config.authentication = authentication;
  return config;
}

function readAuthentication(members: Members): AuthenticationInfo | undefined {
  const [scheme, ...others] = members.texts("schemes") ?? [];
  const credentials = members.text("credentials");
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    members.reading.lose(LOSSES.pushSchemes, scheme === undefined ? "credentials" : "schemes");
  }
  if (scheme === undefined) return undefined;
  return credentials === undefined ? { scheme } : { scheme, credentials };
}
