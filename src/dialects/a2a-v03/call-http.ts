/** Calling over HTTP+JSON: a path and verb per operation below `/v1`, streams as SSE of bare events. */

import type { ErrorCode } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { createFrame, invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeError } from "./errors.ts";
import { LOSSES } from "./losses.ts";
import { decodeProtoEvent, decodeProtoOutcome } from "./proto/decode.ts";
import { encodeRequest } from "./proto/requests.ts";
import { callHeaders, VERSION } from "./service-parameters.ts";

interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
}

function routeOf(operation: Operation, losses: Loss[]): Route {
  const asked = encodeRequest(operation, losses);
  switch (asked.kind) {
    case "send":
    case "stream":
      return { method: "POST", path: `/message:${asked.kind}`, body: asked.request };
    case "get": {
      const { historyLength } = asked.request;
      return { method: "GET", path: pathOf(operation), query: { historyLength } };
    }
    case "cancel":
    case "subscribe":
      return { method: "POST", path: `${pathOf(operation)}:${asked.kind}`, body: asked.request };
    case "push-create":
      return { method: "POST", path: pathOf(operation), body: asked.request };
    case "push-get":
      return { method: "GET", path: pathOf(operation) };
    case "push-delete":
      return { method: "DELETE", path: pathOf(operation) };
    case "push-list": {
      const { pageSize, pageToken } = asked.request;
      return { method: "GET", path: pathOf(operation), query: { pageSize, pageToken } };
    }
    case "extended-card":
      return { method: "GET", path: "/card" };
  }
}

function pathOf(operation: Operation): string {
  if ("taskId" in operation) {
    const configs = `/tasks/${encodeURIComponent(operation.taskId)}/pushNotificationConfigs`;
    return "id" in operation ? `${configs}/${encodeURIComponent(operation.id)}` : configs;
  }
  return "id" in operation ? `/tasks/${encodeURIComponent(operation.id)}` : "";
}

/** The interface's URL may have a query of its own; the path goes before it. Some cards name the `/v1` already. */
function urlOf(target: CallTarget, { path, query = {} }: Route): string {
  const questionMark = target.url.indexOf("?");
  const given = (questionMark === -1 ? target.url : target.url.slice(0, questionMark)).replace(/\/+$/, "");
  const base = given.endsWith("/v1") ? given : `${given}/v1`;
  const search = new URLSearchParams(questionMark === -1 ? "" : target.url.slice(questionMark + 1));
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  // RFC 3986 escapes a space as %20; the plus sign is only for forms.
  return `${base}${path}${search.size === 0 ? "" : `?${search.toString().replaceAll("+", "%20")}`}`;
}

/** What servers mean by a status whose error has no code: those of the official Python library. */
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

/** An error of the protocol has a message. What has none is some server's page about a path it does not know. */
function decodeHttpError(kind: OperationKind, value: Readonly<Record<string, unknown>>, status: number) {
  const given = isObject(value.error) ? value.error : value;
  const code = typeof given.message === "string" ? codeOfStatus(kind, status) : undefined;
  return code === undefined ? decodeError(given, status) : decodeError(given, status, () => code);
}

/** The config alone, as the proto's annotation has it and one official library reads it. */
function withoutEnvelope(call: ExchangeCall): ExchangeCall | undefined {
  const body: unknown = parseResponse(call.body ?? "");
  return isObject(body) && body.config !== undefined ? { ...call, body: JSON.stringify(body.config) } : undefined;
}

interface HttpCalling extends ExchangeCalling {
  /** Servers of one official library subscribe by GET only, those of the other once by POST only; and so for push configs. */
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
    const call = { method: route.method, url: urlOf(target, route), headers: callHeaders(operation, target) };
    if (route.body === undefined) return { value: call, losses };
    call.headers["content-type"] = "application/json";
    return { value: { ...call, body: JSON.stringify(route.body) }, losses };
  },

  decode(kind, { status, text }) {
    const value = parseResponse(text);
    if (status < 200 || status > 299)
      throw isObject(value) ? decodeHttpError(kind, value, status) : httpStatusError(status);
    if (kind !== "push-delete" && value === undefined) throw invalidResponse("it is not JSON");
    return decodeProtoOutcome(kind, value);
  },

  decodeFrame({ data, event, id }) {
    const value = parseResponse(data);
    // After the first event an error has no settled form: seen are an event of that name, and a member of that name.
    if (isObject(value) && isObject(value.error)) throw decodeError(value.error, 0);
    if (event === "error") throw isObject(value) ? decodeError(value, 0) : decodeError({ message: data }, 0);
    if (value === undefined) throw invalidResponse("a frame of the stream is not JSON");
    const read = decodeProtoEvent(value);
    return { value: createFrame(read.value, id), losses: read.losses };
  },

  alternative(call) {
    const path = call.url.split("?", 1)[0] ?? "";
    if (call.method !== "POST") return undefined;
    if (path.endsWith("/pushNotificationConfigs")) return withoutEnvelope(call);
    if (!path.endsWith(":subscribe")) return undefined;
    const { body: _body, headers, ...rest } = call;
    const { "content-type": _contentType, ...others } = headers;
    return { ...rest, method: "GET", headers: others };
  },
};
