/** Frames of a link whose agent dialled us: what we say in the platform's place, and what the agent says. */

import { isRecord } from "../shared/proto/json-reading.ts";
import { parseResponse } from "../shared/responses.ts";
import { toCancelWords } from "../xiaoyi/said-cancel.ts";
import type { MessagePlace } from "../xiaoyi/said-message.ts";

/**
 * A name that no phone has: agents ask a phone their questions in the answer's text, and everyone else in the status,
 * which is where callers look for them.
 */
const DEVICE = "dragoman";

/** The answer to a question is said under the same ids as what led to it, so the task's id serves for both. */
export function toMessageRequest(agentId: string, { sessionId, taskId }: MessagePlace, params: object): string {
  const address = { agentId, deviceId: DEVICE, conversationId: sessionId, sessionId };
  return JSON.stringify({ jsonrpc: "2.0", id: taskId, method: "message/stream", ...address, params });
}

export function toCancelRequest(agentId: string, place: MessagePlace): string {
  const address = { agentId, deviceId: DEVICE, conversationId: place.sessionId };
  return JSON.stringify({ jsonrpc: "2.0", ...address, ...toCancelWords(place) });
}

export function toClearRequest(agentId: string, id: string, sessionId: string): string {
  const address = { agentId, deviceId: DEVICE, conversationId: sessionId, sessionId };
  return JSON.stringify({ jsonrpc: "2.0", id, method: "clearContext", ...address, params: { sessionId } });
}

type Fields = Readonly<Record<string, unknown>>;

export interface HeardResponse {
  readonly kind: "response";
  readonly result: Fields | undefined;
  readonly error: Fields | undefined;
  /** All that may be the id of the task or request, the most likely first. */
  readonly ids: readonly string[];
}

export type Disregard = "not-json" | "no-type" | "other-agent" | "no-response" | "nobody-asked";

type HeardEnvelope =
  | { readonly kind: "introduction"; readonly agentId: string }
  | { readonly kind: "heartbeat" }
  | HeardResponse
  | { readonly kind: "disregarded"; readonly why: Disregard };

/** `agentId` is that of whoever introduced itself; frames that name another are none of its. Never throws. */
export function readEnvelope(text: string, agentId: string | undefined): HeardEnvelope {
  const envelope = parseResponse(text);
  if (!isRecord(envelope)) return disregard("not-json");
  const named = envelope.agentId;
  if (agentId !== undefined && typeof named === "string" && named !== agentId) return disregard("other-agent");
  switch (envelope.msgType) {
    case "clawd_bot_init":
      return typeof named === "string" ? { kind: "introduction", agentId: named } : disregard("no-type");
    case "heartbeat":
      return { kind: "heartbeat" };
    case "agent_response":
      return readResponse(envelope);
    default:
      return disregard("no-type");
  }
}

function readResponse(envelope: Fields): HeardEnvelope {
  const detail = typeof envelope.msgDetail === "string" ? parseResponse(envelope.msgDetail) : undefined;
  if (!isRecord(detail)) return disregard("no-response");
  const result = isRecord(detail.result) ? detail.result : undefined;
  const error = isRecord(detail.error) ? detail.error : undefined;
  if (result === undefined && error === undefined) return disregard("no-response");
  const candidates = [result?.taskId, envelope.taskId, result?.id, detail.id, envelope.sessionId];
  const ids = candidates.filter((id): id is string => typeof id === "string" && id !== "");
  return { kind: "response", result, error, ids };
}

function disregard(why: Disregard): HeardEnvelope {
  return { kind: "disregarded", why };
}
