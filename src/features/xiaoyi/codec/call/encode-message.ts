/** Encodes a user's message as the platform sends it to an agent: the params of `message/stream`. */

import { deriveId, invalidResponse } from "../../../../core/dialects/shared/responses.ts";
import { ProtocolError, taskNotFound } from "../../../../core/model/errors.ts";
import { isObject, type JsonObject } from "../../../../core/model/json.ts";
import { type Loss, toLoss } from "../../../../core/model/loss.ts";
import type { Message } from "../../../../core/model/message.ts";
import type { SendInput } from "../../../../core/model/operation.ts";
import type { Task } from "../../../../core/model/task.ts";
import type { FileWire, PartWire } from "../frames.ts";
import { LOSSES } from "../losses.ts";
import { XIAOYI_EXTENSION, xiaoyiMetadata } from "../metadata.ts";
import { encodeParts } from "../parts.ts";

export interface MessageIds {
  readonly taskId: string;
  readonly sessionId: string;
}

/** The platform chooses the ids: a new session is named after the message, and each task after its session. */
export function messageIdsOf({ chosenId, message }: SendInput): MessageIds {
  const { contextId, messageId, taskId } = message;
  const sessionId = contextId ?? (taskId === undefined ? deriveId("session", messageId) : sessionIdOf(taskId));
  return { sessionId, taskId: taskId ?? createTaskId(sessionId, chosenId ?? messageId) };
}

/** Derived from the task id alone. */
export function messageIdsOfTask(taskId: string): MessageIds {
  return { taskId, sessionId: sessionIdOf(taskId) };
}

/** The URL of a file that is sent as bytes; undefined if it has none. `path` is the path of the part. */
type FileUrlOf = (file: FileWire["file"] & { readonly bytes: string }, path: string) => string | undefined;

export function encodeMessageParams(
  input: SendInput,
  { sessionId, taskId }: MessageIds,
  losses: Loss[],
  addressOf: FileUrlOf = () => undefined,
): object {
  const { configuration, message, metadata } = input;
  if (!isEmpty(configuration)) losses.push(toLoss(LOSSES.configuration, "configuration"));
  loseRequestMetadata(metadata, losses);
  if (losesMembers(message)) losses.push(toLoss(LOSSES.userMessageMembers, "message"));
  const mark = xiaoyiMetadata(message.metadata);
  const parts: PartWire[] = encodeParts(message.parts, "message", losses).map((part, index) =>
    withFileUrl(part, `message.parts[${index}]`, addressOf),
  );
  if (isObject(mark?.variables)) parts.push({ kind: "data", data: { variables: mark.variables } });
  // Sent even if no user has logged in.
  const { agentLoginSessionId = "" } = mark ?? {};
  return {
    id: taskId,
    sessionId,
    agentLoginSessionId,
    message: { kind: "message", messageId: message.messageId, role: "user", parts },
  };
}

/** Some agents read only a file's URL, some only its bytes. */
function withFileUrl(part: PartWire, path: string, addressOf: FileUrlOf): PartWire {
  if (part.kind !== "file" || part.file.bytes === undefined) return part;
  const { bytes, ...file } = part.file;
  const uri = addressOf({ ...file, bytes }, path);
  return uri === undefined ? part : { kind: "file", file: { ...file, uri, bytes } };
}

/** Omitting empty metadata is not a loss. */
export function loseRequestMetadata(metadata: JsonObject | undefined, losses: Loss[]): void {
  if (!isEmpty(metadata)) losses.push(toLoss(LOSSES.requestMetadata, "metadata"));
}

function losesMembers({ extensions, metadata = {}, referenceTaskIds }: Message): boolean {
  const { [XIAOYI_EXTENSION]: _own, ...others } = metadata;
  return !(isEmpty(others) && isEmpty(extensions) && isEmpty(referenceTaskIds));
}

function isEmpty(value: object | undefined): boolean {
  return value === undefined || Object.keys(value).length === 0;
}

/**
 * Some agents read the session beside the method, some the task in the params, so both are sent in every such place.
 */
export function encodeCancel({ sessionId, taskId }: MessageIds): object {
  return { id: taskId, method: "tasks/cancel", sessionId, taskId, params: { id: taskId, sessionId } };
}

/** `state` is the task's state as reported by the agent. */
export function decodeCanceledTask({ sessionId, taskId }: MessageIds, state: unknown): Task {
  switch (state) {
    case "canceled":
    case "cancelled":
      return { id: taskId, contextId: sessionId, status: { state: "TASK_STATE_CANCELED" } };
    case "failed":
      throw new ProtocolError("TASK_NOT_CANCELABLE", "The agent could not cancel the task.", { metadata: { taskId } });
    case "unknown":
      throw taskNotFound(taskId);
    default:
      throw invalidResponse("result.status.state is not a state");
  }
}

/** Separates the session id from the rest of a task id, as the platform builds them. */
const SEPARATOR = "&";

/** A separator in the rest would shift the border: the id may be that of another platform's task. */
function createTaskId(sessionId: string, own: string): string {
  return `${sessionId}${SEPARATOR}${own.replaceAll(/[%&]/g, encodeURIComponent)}`;
}

/** The session of a task; an id in another format is used as the session id. */
export function sessionIdOf(taskId: string): string {
  const at = taskId.lastIndexOf(SEPARATOR);
  return at <= 0 ? taskId : taskId.slice(0, at);
}
