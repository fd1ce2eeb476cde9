/**
 * Frames of a link: what the platform sends, and what an agent sends. The platform sends plain JSON-RPC, JSON-RPC as a
 * string in an envelope, or an `action` of the older protocol; it accepts JSON-RPC in an envelope only.
 */

import { type Fields, fieldsOf, isObject } from "../../../core/model/json.ts";
import type { JsonRpcId } from "../../../core/wire/json-rpc.ts";
import { JsonParseError, parseJson } from "../../../core/wire/parse-json.ts";
import { withoutSeparator } from "../../../core/wire/sse.ts";
import { type ControlTarget, decodeControl, methodOf, nonEmptyString } from "./control.ts";

/** The first frame of every connection; it is not answered. */
export function toIntroduction(agentId: string): string {
  return JSON.stringify({ msgType: "clawd_bot_init", agentId });
}

export function toHeartbeat(agentId: string): string {
  return JSON.stringify({ msgType: "heartbeat", agentId });
}

/** `sessionId` is the conversation, not the app's session, which changes whenever the app is opened. */
export function toAgentResponse(
  address: { readonly agentId: string; readonly sessionId: string; readonly taskId: string },
  jsonRpcResponse: string,
): string {
  const { agentId, sessionId, taskId } = address;
  return JSON.stringify({ msgType: "agent_response", agentId, sessionId, taskId, msgDetail: jsonRpcResponse });
}

export interface MessageFrame {
  readonly kind: "message";
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: Fields;
  /** The app's session id, if the frame has one: an alias of the conversation. */
  readonly appSessionId: string | undefined;
  readonly conversationId: string | undefined;
  readonly deviceId: unknown;
}

export interface ControlFrame {
  readonly kind: "cancel" | "clear";
  readonly id: JsonRpcId;
  readonly target: ControlTarget;
}

export type DropReason = "not-json" | "too-deep" | "no-object" | "other-agent" | "error" | "no-method" | "long-id";

export type PlatformFrame =
  | MessageFrame
  | ControlFrame
  | {
      readonly kind: "unknown-method";
      readonly id: JsonRpcId;
      readonly method: string;
      readonly target: ControlTarget;
    }
  | { readonly kind: "heartbeat" }
  | { readonly kind: "disregarded"; readonly why: DropReason };

interface FrameLimits {
  readonly maxDepth: number;
}

/** Never throws: frames that cannot be decoded are returned as disregarded. */
export function decodePlatformFrame(text: string, agentId: string, limits: FrameLimits): PlatformFrame {
  const outer = decodeFields(text, limits);
  if (typeof outer === "string") return drop(outer);
  if (isForOtherAgent(outer, agentId)) return drop("other-agent");
  if (outer.msgDetail === undefined) return decodeRequest(outer);
  const inner = isObject(outer.msgDetail) ? outer.msgDetail : decodeDetail(outer.msgDetail, limits);
  if (typeof inner === "string") return drop(inner);
  if (isForOtherAgent(inner, agentId)) return drop("other-agent");
  const { msgType, sessionId, taskId } = outer;
  return decodeRequest({ msgType, sessionId, taskId, ...inner });
}

/** The detail of an envelope may be missing if the envelope itself has all fields. */
function decodeDetail(detail: unknown, limits: FrameLimits): Fields | DropReason {
  if (detail === "" || detail === null) return {};
  return typeof detail === "string" ? decodeFields(detail, limits) : "no-object";
}

function decodeFields(text: string, limits: FrameLimits): Fields | DropReason {
  try {
    const value = parseJson(withoutSeparator(text), limits);
    return isObject(value) ? value : "no-object";
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
    return error.reason === "depth" ? "too-deep" : "not-json";
  }
}

function isForOtherAgent({ agentId }: Fields, own: string): boolean {
  return typeof agentId === "string" && agentId !== own;
}

function drop(why: DropReason): PlatformFrame {
  return { kind: "disregarded", why };
}

/** Ids are stored for as long as they may be needed; agents do not accept longer ones either. */
const MAX_ID_LENGTH = 1_024;
const ID_MEMBERS = ["id", "taskId", "sessionId", "session_id", "conversationId"] as const;

function hasLongId(fields: Fields): boolean {
  return ID_MEMBERS.map((name) => fields[name]).some((id) => typeof id === "string" && id.length > MAX_ID_LENGTH);
}

function decodeRequest(request: Fields): PlatformFrame {
  const params = fieldsOf(request.params);
  if (hasLongId(request) || hasLongId(params)) return drop("long-id");
  const id = toId(request.id);
  const word = nonEmptyString(request.method) ?? nonEmptyString(request.action);
  const method = word ?? (methodOf(request.msgType) === undefined ? undefined : request.msgType);
  if (typeof method !== "string") {
    if (request.msgType === "heartbeat") return { kind: "heartbeat" };
    return drop(request.error === undefined ? "no-method" : "error");
  }
  const known = methodOf(method);
  if (known === "cancel" || known === "clear") return { kind: known, id, target: decodeControl(request) };
  // Any request with a message counts as a message: the platform's test tools use other methods.
  if (known !== "message" && !isObject(params.message)) {
    return { kind: "unknown-method", id, method, target: decodeControl(request) };
  }
  return {
    kind: "message",
    id,
    method,
    params: params.id === undefined ? { ...params, id: request.taskId } : params,
    appSessionId: nonEmptyString(request.sessionId),
    conversationId: nonEmptyString(request.conversationId),
    deviceId: request.deviceId,
  };
}

/** Echoed unchanged. */
function toId(value: unknown): JsonRpcId {
  return typeof value === "string" || (typeof value === "number" && Number.isFinite(value)) ? value : null;
}
