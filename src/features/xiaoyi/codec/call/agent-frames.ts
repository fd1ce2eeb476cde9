/** Frames of a link whose agent dialled us: those we send as the platform, and those the agent sends. */

import { parseResponse } from "../../../../core/dialects/shared/responses.ts";
import { type Fields, isObject } from "../../../../core/model/json.ts";
import { nonEmptyString } from "../control.ts";
import { encodeCancel, type MessageIds } from "./encode-message.ts";

/**
 * An id that no phone has: agents put questions to a phone into the answer's text, and all others into the status,
 * which is where callers expect them.
 */
const DEVICE_ID = "dragoman";

/** The answer to a question has the same ids as the message that led to it, so the task id is used for both. */
export function toMessageRequest(agentId: string, { sessionId, taskId }: MessageIds, params: object): string {
  const address = { agentId, deviceId: DEVICE_ID, conversationId: sessionId, sessionId };
  return JSON.stringify({ jsonrpc: "2.0", id: taskId, method: "message/stream", ...address, params });
}

export function toCancelRequest(agentId: string, ids: MessageIds): string {
  const address = { agentId, deviceId: DEVICE_ID, conversationId: ids.sessionId };
  return JSON.stringify({ jsonrpc: "2.0", ...address, ...encodeCancel(ids) });
}

export interface AgentResponse {
  readonly kind: "response";
  readonly result: Fields | undefined;
  readonly error: Fields | undefined;
  /** Candidates for the id of the task or request, most likely first. */
  readonly ids: readonly string[];
}

export type DropReason = "not-json" | "no-type" | "other-agent" | "no-response" | "not-asked";

type AgentFrame =
  | { readonly kind: "introduction"; readonly agentId: string }
  | { readonly kind: "heartbeat" }
  | AgentResponse
  | { readonly kind: "disregarded"; readonly why: DropReason };

/** `agentId` is the id from the introduction; frames that name another agent are dropped. Never throws. */
export function decodeAgentFrame(text: string, agentId: string | undefined): AgentFrame {
  const envelope = parseResponse(text);
  if (!isObject(envelope)) return drop("not-json");
  const named = envelope.agentId;
  if (agentId !== undefined && typeof named === "string" && named !== agentId) return drop("other-agent");
  switch (envelope.msgType) {
    case "clawd_bot_init":
      return typeof named === "string" ? { kind: "introduction", agentId: named } : drop("no-type");
    case "heartbeat":
      return { kind: "heartbeat" };
    case "agent_response":
      return decodeResponse(envelope);
    default:
      return drop("no-type");
  }
}

function decodeResponse(envelope: Fields): AgentFrame {
  const detail = typeof envelope.msgDetail === "string" ? parseResponse(envelope.msgDetail) : undefined;
  if (!isObject(detail)) return drop("no-response");
  const result = isObject(detail.result) ? detail.result : undefined;
  const error = isObject(detail.error) ? detail.error : undefined;
  if (result === undefined && error === undefined) return drop("no-response");
  const candidates = [result?.taskId, envelope.taskId, result?.id, detail.id, envelope.sessionId];
  return { kind: "response", result, error, ids: candidates.flatMap((id) => nonEmptyString(id) ?? []) };
}

function drop(why: DropReason): AgentFrame {
  return { kind: "disregarded", why };
}
