/** Frames of a link whose agent dialled us: what we say in the platform's place, and what the agent says. */

import { isObject } from "../../../model/json.ts";
import { parseResponse } from "../../shared/responses.ts";
import { encodeCancel, type MessageIds } from "../../xiaoyi/call/encode-message.ts";

/**
 * A name that no phone has: agents ask a phone their questions in the answer's text, and everyone else in the status,
 * which is where callers look for them.
 */
const DEVICE_ID = "dragoman";

/** The answer to a question is said under the same ids as what led to it, so the task's id serves for both. */
export function toMessageRequest(agentId: string, { sessionId, taskId }: MessageIds, params: object): string {
  const address = { agentId, deviceId: DEVICE_ID, conversationId: sessionId, sessionId };
  return JSON.stringify({ jsonrpc: "2.0", id: taskId, method: "message/stream", ...address, params });
}

export function toCancelRequest(agentId: string, ids: MessageIds): string {
  const address = { agentId, deviceId: DEVICE_ID, conversationId: ids.sessionId };
  return JSON.stringify({ jsonrpc: "2.0", ...address, ...encodeCancel(ids) });
}

export function toClearRequest(agentId: string, id: string, sessionId: string): string {
  const address = { agentId, deviceId: DEVICE_ID, conversationId: sessionId, sessionId };
  return JSON.stringify({ jsonrpc: "2.0", id, method: "clearContext", ...address, params: { sessionId } });
}

type Fields = Readonly<Record<string, unknown>>;

export interface AgentResponse {
  readonly kind: "response";
  readonly result: Fields | undefined;
  readonly error: Fields | undefined;
  /** All that may be the id of the task or request, the most likely first. */
  readonly ids: readonly string[];
}

export type DropReason = "not-json" | "no-type" | "other-agent" | "no-response" | "not-asked";

type AgentFrame =
  | { readonly kind: "introduction"; readonly agentId: string }
  | { readonly kind: "heartbeat" }
  | AgentResponse
  | { readonly kind: "disregarded"; readonly why: DropReason };

/** `agentId` is that of whoever introduced itself; frames that name another are none of its. Never throws. */
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
  const ids = candidates.filter((id): id is string => typeof id === "string" && id !== "");
  return { kind: "response", result, error, ids };
}

function drop(why: DropReason): AgentFrame {
  return { kind: "disregarded", why };
}
