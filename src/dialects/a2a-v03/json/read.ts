/** Decodes the JSON of 0.3 to model values: requests strictly, responses (`reading.tolerant`) leniently. */

import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import { isObject, omitUndefined } from "../../../model/json.ts";
import type { Message, Role } from "../../../model/message.ts";
import type { Artifact, Task, TaskStatus } from "../../../model/task.ts";
import type { Members } from "../../shared/json-members.ts";
import { readState, readTimestamp } from "../../shared/legacy/decode.ts";
import { decodeRole } from "../../shared/state-names.ts";
import { LOSSES } from "../losses.ts";
import { readPart } from "../parts.ts";

export function readMessage(members: Members): Message {
  refuseOtherKind(members, "message");
  return omitUndefined({
    messageId: messageIdIn(members),
    role: roleIn(members),
    parts: members.requiredList("parts", readPart),
    contextId: members.text("contextId"),
    taskId: members.text("taskId"),
    metadata: members.struct("metadata"),
    extensions: members.texts("extensions"),
    referenceTaskIds: members.texts("referenceTaskIds"),
  });
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
  return omitUndefined({
    artifactId: members.requiredText("artifactId"),
    parts: members.requiredList("parts", readPart),
    name: members.text("name"),
    description: members.text("description"),
    metadata: members.struct("metadata"),
    extensions: members.texts("extensions"),
  });
}

function readStatus(members: Members): TaskStatus {
  return omitUndefined({
    state: readState(members),
    message: members.object("message", readMessage),
    timestamp: readTimestamp(members, LOSSES.unreadableTimestamp),
  });
}

export function readTask(members: Members): Task {
  refuseOtherKind(members, "task");
  return omitUndefined({
    id: members.requiredText("id"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
    artifacts: members.list("artifacts", readArtifact),
    history: members.list("history", readMessage),
    metadata: members.struct("metadata"),
  });
}

function readStatusUpdate(members: Members): TaskStatusUpdate {
  return omitUndefined({
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
    metadata: members.struct("metadata"),
  });
}

function readArtifactUpdate(members: Members): TaskArtifactUpdate {
  return omitUndefined({
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    artifact: members.requiredObject("artifact", readArtifact),
    append: members.flag("append") || undefined,
    lastChunk: members.flag("lastChunk") || undefined,
    metadata: members.struct("metadata"),
  });
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
