/** Decodes the JSON of 0.3 to model values: requests strictly, responses (`reading.lenient`) leniently. */

import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import { isObject } from "../../../model/json.ts";
import type { Message } from "../../../model/message.ts";
import type { Artifact, Task, TaskStatus } from "../../../model/task.ts";
import type { Members } from "../../shared/json-members.ts";
import { readRole, readState, readTimestamp } from "../../shared/legacy/decode.ts";
import { DERIVED_IDS, RESPONSE_LOSSES } from "../../shared/responses.ts";
import { LOSSES } from "../losses.ts";
import { readPart } from "../parts.ts";

export function readMessage(members: Members): Message {
  refuseOtherKind(members, "message");
  const message = {
    role: readRole(members),
    parts: members.requiredList("parts", readPart),
    contextId: members.text("contextId"),
    taskId: members.text("taskId"),
    metadata: members.struct("metadata"),
    extensions: members.texts("extensions"),
    referenceTaskIds: members.texts("referenceTaskIds"),
  };
  return { messageId: members.requiredText("messageId", () => DERIVED_IDS.messageId(message)), ...message };
}

/** Of what a peer sends, the other members decide. */
function refuseOtherKind(members: Members, kind: string): void {
  const received = members.raw("kind");
  if (received === undefined || received === kind || members.reading.lenient) return;
  members.violateMember("kind", `must be ${kind}`);
}

function readArtifact(members: Members): Artifact {
  return {
    artifactId: members.requiredText("artifactId", () => DERIVED_IDS.artifactId(undefined, members.reading.index)),
    parts: members.requiredList("parts", readPart),
    name: members.text("name"),
    description: members.text("description"),
    metadata: members.struct("metadata"),
    extensions: members.texts("extensions"),
  };
}

function readStatus(members: Members): TaskStatus {
  return {
    state: readState(members),
    message: members.object("message", readMessage),
    timestamp: readTimestamp(members, LOSSES.unreadableTimestamp),
  };
}

export function readTask(members: Members): Task {
  refuseOtherKind(members, "task");
  return {
    id: members.requiredText("id"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
    artifacts: members.list("artifacts", readArtifact),
    history: members.list("history", readMessage),
    metadata: members.struct("metadata"),
  };
}

function readStatusUpdate(members: Members): TaskStatusUpdate {
  return {
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", readStatus),
    metadata: members.struct("metadata"),
  };
}

function readArtifactUpdate(members: Members): TaskArtifactUpdate {
  return {
    taskId: members.requiredText("taskId"),
    contextId: members.text("contextId") ?? "",
    artifact: members.requiredObject("artifact", readArtifact),
    append: members.flag("append") || undefined,
    lastChunk: members.flag("lastChunk") || undefined,
    metadata: members.struct("metadata"),
  };
}

const KINDS = ["task", "message", "status-update", "artifact-update"];

/**
 * The result of a stream or a send, distinguished by `kind`, else by the members that only one of them has. Undefined if
 * it is of a kind that a later version may have added.
 */
export function readEvent(members: Members): StreamEvent | undefined {
  const kind = members.raw("kind");
  switch (KINDS.find((known) => known === kind) ?? kindByShape(members)) {
    case "task":
      return { task: readTask(members) };
    case "message":
      return { message: readMessage(members) };
    case "status-update":
      return { statusUpdate: readStatusUpdate(members) };
    case "artifact-update":
      return { artifactUpdate: readArtifactUpdate(members) };
    default:
      members.reading.lose(RESPONSE_LOSSES.unknownEvent, "kind");
      return undefined;
  }
}

function kindByShape(members: Members): string | undefined {
  if (isObject(members.raw("artifact"))) return "artifact-update";
  if (isObject(members.raw("status"))) return members.raw("id") === undefined ? "status-update" : "task";
  return Array.isArray(members.raw("parts")) ? "message" : undefined;
}
