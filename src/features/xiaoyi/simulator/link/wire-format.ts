import type { Fields } from "../../../../core/model/json.ts";
import { DecodeError, parseObject } from "../json.ts";
import type { OutgoingControl, OutgoingMessage } from "../phone.ts";
import { type AgentResponse, decodeResponse } from "../task/decode-response.ts";
import type { Report } from "../violations.ts";

/** An `agent_response` with a valid envelope. */
export interface Envelope {
  readonly sessionId: string;
  readonly taskId: string;
  readonly response: AgentResponse;
  /** Approximate size of `msgDetail` in bytes. */
  readonly size: number;
}

/** Undefined if the platform would reject it; the reason has been reported. */
export function decodeEnvelope({ msgDetail, sessionId, taskId }: Fields, report: Report): Envelope | undefined {
  const known = typeof taskId === "string" ? taskId : undefined;
  if (typeof msgDetail !== "string") {
    report("detail-not-a-string", `It was ${msgDetail === undefined ? "missing" : "JSON"}.`, known);
    return undefined;
  }
  try {
    if (known === undefined || typeof sessionId !== "string")
      throw new DecodeError("The envelope lacks sessionId or taskId.");
    const detail = parseObject(msgDetail);
    if (detail === undefined) throw new DecodeError("msgDetail holds no JSON object.");
    return { sessionId, taskId: known, response: decodeResponse(detail), size: msgDetail.length };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    report("bad-response", error.message, known);
    return undefined;
  }
}

/** The platform encodes the same request in several ways; agents must support all of them. */
export interface WireStyle {
  /** Plain JSON-RPC; JSON-RPC as a string in an envelope; for clear and cancel also the form that predates JSON-RPC. */
  readonly encoding: "direct" | "wrapped" | "action";
  /** `clearContext` and `tasks/cancel`, or `clear_context` and `tasks_cancel`. */
  readonly spelling: "documented" | "underscored";
  /**
   * Where clear and cancel requests name their session: the app's at the top level, or the conversation in `params`.
   */
  readonly controlSession: "top" | "params";
  /** Where cancel requests name their task, if at all. */
  readonly cancelNames: "nothing" | "id" | "taskId" | "params";
  /** Message ids are optional. */
  readonly messageIds: "given" | "left-out";
}

export const DEFAULT_STYLE: WireStyle = {
  encoding: "direct",
  spelling: "documented",
  controlSession: "top",
  cancelNames: "nothing",
  messageIds: "given",
};

const METHODS = {
  cancel: { documented: "tasks/cancel", underscored: "tasks_cancel", action: "tasks/cancel", msgType: "message" },
  clear: { documented: "clearContext", underscored: "clear_context", action: "clear", msgType: "clearContext" },
} as const satisfies Record<OutgoingControl["kind"], Record<string, string>>;

/** The content shared by both channels to an agent. */
export function messageParams({ messageId, parts, sender, taskId }: OutgoingMessage, style: WireStyle): Fields {
  return {
    id: taskId,
    sessionId: sender.conversationId,
    agentLoginSessionId: sender.loginSessionId,
    message: { kind: "message", ...(style.messageIds === "given" ? { messageId } : {}), role: "user", parts },
  };
}

export function encodeMessage(message: OutgoingMessage, style: WireStyle): string {
  const { requestId, sender, taskId } = message;
  const request = {
    jsonrpc: "2.0",
    id: requestId,
    method: "message/stream",
    agentId: sender.agentId,
    deviceId: sender.deviceId,
    conversationId: sender.conversationId,
    sessionId: sender.appSessionId,
    params: messageParams(message, style),
  };
  const isData = message.parts.every(({ kind }) => kind === "data");
  return style.encoding === "wrapped"
    ? wrap(isData ? "data" : "message", sender.agentId, sender.appSessionId, taskId, request)
    : JSON.stringify(request);
}

export function encodeControl(control: OutgoingControl, style: WireStyle, now: number): string {
  const { sender, taskId, kind } = control;
  const names = METHODS[kind];
  const named = kind === "cancel" && taskId !== undefined ? style.cancelNames : "nothing";
  const id = named === "id" ? taskId : control.requestId;
  const sessionId = sender.appSessionId;
  const namedTask = named === "taskId" ? { taskId } : {};
  if (style.encoding === "action") {
    return JSON.stringify({
      action: names.action,
      agentId: sender.agentId,
      sessionId,
      id,
      ...namedTask,
      timestamp: now,
    });
  }
  const params = {
    ...(style.controlSession === "params" ? { sessionId: sender.conversationId } : {}),
    ...(named === "params" ? { id: taskId } : {}),
  };
  const request = {
    jsonrpc: "2.0",
    id,
    method: names[style.spelling],
    agentId: sender.agentId,
    ...(style.controlSession === "top" ? { sessionId } : {}),
    ...namedTask,
    ...(Object.keys(params).length === 0 ? {} : { params }),
  };
  return style.encoding === "wrapped"
    ? wrap(names.msgType, sender.agentId, sessionId, taskId ?? "", request)
    : JSON.stringify(request);
}

function wrap(msgType: string, agentId: string, sessionId: string, taskId: string, request: Fields): string {
  return JSON.stringify({ msgType, agentId, sessionId, taskId, msgDetail: JSON.stringify(request) });
}
