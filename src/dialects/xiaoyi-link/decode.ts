/**
 * What the platform says on a link: JSON-RPC as it is, the same as text in an envelope, or an action of before there was
 * JSON-RPC. Never throws: what cannot be understood is told as that.
 */

import type { JsonRpcId } from "../../wire/json-rpc.ts";
import { JsonParseError, parseJson } from "../../wire/parse-json.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import { type ControlWords, methodOf, readControl } from "../xiaoyi/control.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface HeardRequest {
  readonly kind: "message";
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: Fields;
  /** What the app calls its session, if the frame says so: another name for the conversation. */
  readonly appSessionId: string | undefined;
  readonly conversationId: string | undefined;
  readonly deviceId: unknown;
}

export interface HeardControl {
  readonly kind: "cancel" | "clear";
  readonly id: JsonRpcId;
  readonly words: ControlWords;
}

interface HeardUnknown {
  readonly kind: "unknown-method";
  readonly id: JsonRpcId;
  readonly method: string;
  readonly words: ControlWords;
}

/** Frames that nothing is done about. */
export type Disregard = "not-json" | "too-deep" | "no-object" | "other-agent" | "error" | "no-method" | "long-id";

export type HeardFrame =
  | HeardRequest
  | HeardControl
  | HeardUnknown
  | { readonly kind: "heartbeat" }
  | { readonly kind: "disregarded"; readonly why: Disregard };

interface FrameLimits {
  readonly maxDepth: number;
}

export function readFrame(text: string, agentId: string, limits: FrameLimits): HeardFrame {
  const outer = readFields(text, limits);
  if (typeof outer === "string") return disregard(outer);
  if (isOfOther(outer, agentId)) return disregard("other-agent");
  if (outer.msgDetail === undefined) return readRequest(outer);
  const inner = isRecord(outer.msgDetail) ? outer.msgDetail : readDetail(outer.msgDetail, limits);
  if (typeof inner === "string") return disregard(inner);
  if (isOfOther(inner, agentId)) return disregard("other-agent");
  const { msgType, sessionId, taskId } = outer;
  return readRequest({ msgType, sessionId, taskId, ...inner });
}

/** What is said in an envelope may also be said by the envelope alone. */
function readDetail(detail: unknown, limits: FrameLimits): Fields | Disregard {
  if (detail === "" || detail === null) return {};
  return typeof detail === "string" ? readFields(detail, limits) : "no-object";
}

function readFields(text: string, limits: FrameLimits): Fields | Disregard {
  try {
    const value = parseJson(text, limits);
    return isRecord(value) ? value : "no-object";
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
    return error.reason === "depth" ? "too-deep" : "not-json";
  }
}

function isOfOther({ agentId }: Fields, own: string): boolean {
  return typeof agentId === "string" && agentId !== own;
}

function disregard(why: Disregard): HeardFrame {
  return { kind: "disregarded", why };
}

/** Ids are kept for as long as somebody may come back to them; no agent takes longer ones either. */
const LONGEST_ID = 1_024;
const IDS = ["id", "taskId", "sessionId", "session_id", "conversationId"] as const;

function hasLongId(fields: Fields): boolean {
  return IDS.some((name) => {
    const id = fields[name];
    return typeof id === "string" && id.length > LONGEST_ID;
  });
}

function readRequest(request: Fields): HeardFrame {
  if (hasLongId(request) || (isRecord(request.params) && hasLongId(request.params))) return disregard("long-id");
  const id = toId(request.id);
  const word = [request.method, request.action].find((one) => typeof one === "string" && one !== "");
  const method = word ?? (methodOf(request.msgType) === undefined ? undefined : request.msgType);
  if (typeof method !== "string") {
    if (request.msgType === "heartbeat") return { kind: "heartbeat" };
    return disregard(request.error === undefined ? "no-method" : "error");
  }
  const known = methodOf(method);
  if (known === "cancel" || known === "clear") return { kind: known, id, words: readControl(request) };
  const params = isRecord(request.params) ? request.params : {};
  // Whatever carries a message is one: the platform's own test tools use other methods.
  if (known !== "message" && !isRecord(params.message)) {
    return { kind: "unknown-method", id, method, words: readControl(request) };
  }
  return {
    kind: "message",
    id,
    method,
    params: params.id === undefined ? { ...params, id: request.taskId } : params,
    appSessionId: textIn(request.sessionId),
    conversationId: textIn(request.conversationId),
    deviceId: request.deviceId,
  };
}

/** Echoed as it is, whatever it is worth. */
function toId(value: unknown): JsonRpcId {
  return typeof value === "string" || (typeof value === "number" && Number.isFinite(value)) ? value : null;
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
