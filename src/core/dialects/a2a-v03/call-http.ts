/** Calling over HTTP+JSON: one path and verb per operation below `/v1`, streams as SSE of bare events. */

import type { ErrorCode } from "../../model/errors.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { asGet, decodeBareFrame, type HttpCall, toExchangeCall } from "../shared/http/calling.ts";
import { createFrame, invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeError } from "./errors.ts";
import { LOSSES } from "./losses.ts";
import { decodeProtoEvent, decodeProtoOutcome } from "./proto/decode.ts";
import { encodeRequest } from "./proto/requests.ts";
import { serviceHeaders, VERSION } from "./service-parameters.ts";

function routeOf(operation: Operation, losses: Loss[]): HttpCall {
  const request = encodeRequest(operation, losses);
  const path = pathOf(operation);
  switch (operation.kind) {
    case "send":
    case "stream":
      return { method: "POST", path: `/message:${operation.kind}`, body: request };
    case "cancel":
    case "subscribe":
      return { method: "POST", path: `${path}:${operation.kind}`, body: request };
    case "push-create":
      return { method: "POST", path, body: request };
    case "push-delete":
      return { method: "DELETE", path };
    case "get":
      return { method: "GET", path, query: { historyLength: operation.historyLength } };
    case "push-list":
      return { method: "GET", path, query: { pageSize: operation.pageSize, pageToken: operation.pageToken } };
    case "extended-card":
      return { method: "GET", path: "/card" };
    default:
      return { method: "GET", path };
  }
}

function pathOf(operation: Operation): string {
  if ("taskId" in operation) {
    const configs = `/tasks/${encodeURIComponent(operation.taskId)}/pushNotificationConfigs`;
    return "id" in operation ? `${configs}/${encodeURIComponent(operation.id)}` : configs;
  }
  return "id" in operation ? `/tasks/${encodeURIComponent(operation.id)}` : "";
}

/** Some cards already include the `/v1`. */
function addressOf({ url }: CallTarget): string {
  const [given = "", ...query] = url.split("?");
  const base = given.replace(/\/+$/, "");
  return [base.endsWith("/v1") ? base : `${base}/v1`, ...query].join("?");
}

/** Error codes for statuses of errors without a code, as the official Python library uses them. */
function codeOfStatus(kind: OperationKind, status: number): ErrorCode | undefined {
  switch (status) {
    case 404:
      return kind === "extended-card" ? "EXTENDED_AGENT_CARD_NOT_CONFIGURED" : "TASK_NOT_FOUND";
    case 409:
      return "TASK_NOT_CANCELABLE";
    case 501:
      return kind.startsWith("push-") ? "PUSH_NOTIFICATION_NOT_SUPPORTED" : "UNSUPPORTED_OPERATION";
    case 502:
      return "INVALID_AGENT_RESPONSE";
    default:
      return undefined;
  }
}

/** A protocol error has a message. Without one, it is some server's page for an unknown path. */
function decodeHttpError(kind: OperationKind, value: JsonObject, status: number) {
  const given = isObject(value.error) ? value.error : value;
  const code = typeof given.message === "string" ? codeOfStatus(kind, status) : undefined;
  return decodeError(given, status, code);
}

/** The config alone, as the proto's annotation has it and one official library expects it. */
function withoutEnvelope(call: ExchangeCall): ExchangeCall | undefined {
  const body: unknown = parseResponse(call.body ?? "");
  return isObject(body) && body.config !== undefined ? { ...call, body: JSON.stringify(body.config) } : undefined;
}

interface HttpCalling extends ExchangeCalling {
  /**
   * Servers of one official library subscribe by GET only, older ones of the other by POST only; push configs differ
   * in the same way.
   */
  alternative(call: ExchangeCall): ExchangeCall | undefined;
}

export const httpCalling: HttpCalling = {
  carrier: "exchange",
  binding: "HTTP+JSON",
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    const route = routeOf(operation, losses);
    if (target.tenant !== undefined && target.tenant !== "") losses.push(toLoss(LOSSES.tenant, "call.tenant"));
    return { value: toExchangeCall(route, addressOf(target), serviceHeaders(operation, target)), losses };
  },

  decode(kind, { status, text }) {
    const value = parseResponse(text);
    if (status < 200 || status > 299)
      throw isObject(value) ? decodeHttpError(kind, value, status) : httpStatusError(status);
    if (kind !== "push-delete" && value === undefined) throw invalidResponse("it is not JSON");
    return decodeProtoOutcome(kind, value);
  },

  decodeFrame(frame) {
    const { losses, value } = decodeProtoEvent(decodeBareFrame(frame, decodeError));
    return { value: value && createFrame(value, frame.id), losses };
  },

  alternative(call) {
    const path = call.url.split("?", 1)[0] ?? "";
    if (call.method !== "POST") return undefined;
    if (path.endsWith("/pushNotificationConfigs")) return withoutEnvelope(call);
    return path.endsWith(":subscribe") ? asGet(call) : undefined;
  },
};
