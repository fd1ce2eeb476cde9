/** Calling over HTTP+JSON: a path and verb per operation, streams as SSE of bare events. */

import { isObject } from "../../model/json.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeFrame, decodeOutcome } from "./decode.ts";
import { decodeError } from "./errors.ts";
import { callHeaders, tenantOf, toTimestamp, VERSION } from "./service-parameters.ts";

const MEDIA_TYPE = "application/a2a+json";
const ACCEPT = `${MEDIA_TYPE}, application/json`;

interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Members that are undefined are left out by `JSON.stringify`. */
  readonly body?: object;
}

function routeOf(operation: Operation): Route {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { configuration, kind, message, metadata } = operation;
      return { method: "POST", path: `/message:${kind}`, body: { message, configuration, metadata } };
    }
    case "get":
      return { method: "GET", path: taskPath(operation.id), query: { historyLength: operation.historyLength } };
    case "list": {
      const { kind: _kind, statusTimestampAfter, ...query } = operation;
      const timestamp = toTimestamp(statusTimestampAfter);
      return { method: "GET", path: "/tasks", query: { ...query, statusTimestampAfter: timestamp } };
    }
    case "cancel":
      return { method: "POST", path: `${taskPath(operation.id)}:cancel`, body: { metadata: operation.metadata } };
    case "subscribe":
      return { method: "POST", path: `${taskPath(operation.id)}:subscribe`, body: {} };
    case "push-create":
      return { method: "POST", path: pushPath(operation.taskId), body: operation.config };
    case "push-get":
      return { method: "GET", path: `${pushPath(operation.taskId)}/${encodeURIComponent(operation.id)}` };
    case "push-list": {
      const { pageSize, pageToken, taskId } = operation;
      return { method: "GET", path: pushPath(taskId), query: { pageSize, pageToken } };
    }
    case "push-delete":
      return { method: "DELETE", path: `${pushPath(operation.taskId)}/${encodeURIComponent(operation.id)}` };
    case "extended-card":
      return { method: "GET", path: "/extendedAgentCard" };
  }
}

function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
}

function pushPath(taskId: string): string {
  return `${taskPath(taskId)}/pushNotificationConfigs`;
}

/** The interface's URL may have a query of its own; the path goes before it. */
function urlOf(target: CallTarget, { path, query = {} }: Route): string {
  const questionMark = target.url.indexOf("?");
  const base = questionMark === -1 ? target.url : target.url.slice(0, questionMark);
  const search = new URLSearchParams(questionMark === -1 ? "" : target.url.slice(questionMark + 1));
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const tenant = tenantOf(target);
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(tenant)}`;
  // RFC 3986 escapes a space as %20; the plus sign is only for forms.
  const suffix = search.size === 0 ? "" : `?${search.toString().replaceAll("+", "%20")}`;
  return `${base.replace(/\/+$/, "")}${prefix}${path}${suffix}`;
}

interface HttpCalling extends ExchangeCalling {
  /** Subscribing is POST in the protocol's text and GET in its proto: the other verb for peers that know only that. */
  alternative(call: ExchangeCall): ExchangeCall | undefined;
}

export const httpCalling: HttpCalling = {
  carrier: "exchange",
  binding: "HTTP+JSON",
  version: VERSION,

  encode(operation, target) {
    const route = routeOf(operation);
    const call = { method: route.method, url: urlOf(target, route), headers: callHeaders(operation, target, ACCEPT) };
    if (route.body === undefined) return { value: call, losses: NO_LOSSES };
    call.headers["content-type"] = MEDIA_TYPE;
    return { value: { ...call, body: JSON.stringify(route.body) }, losses: NO_LOSSES };
  },

  decode(kind, { status, text }) {
    const value = parseResponse(text);
    if (status < 200 || status > 299) {
      if (!isObject(value)) throw httpStatusError(status);
      throw decodeError(isObject(value.error) ? value.error : value, status);
    }
    if (kind !== "push-delete" && value === undefined) throw invalidResponse("it is not JSON");
    return { value: decodeOutcome(kind, value), losses: NO_LOSSES };
  },

  decodeFrame({ data, event, id }) {
    const value = parseResponse(data);
    // After the first event an error has no settled form: seen are an event of that name, and a member of that name.
    if (isObject(value) && isObject(value.error)) throw decodeError(value.error, 0);
    if (event === "error") throw isObject(value) ? decodeError(value, 0) : decodeError({ message: data }, 0);
    if (value === undefined) throw invalidResponse("a frame of the stream is not JSON");
    return { value: decodeFrame(value, id), losses: NO_LOSSES };
  },

  alternative(call) {
    if (call.method !== "POST" || !call.url.split("?", 1)[0]?.endsWith(":subscribe")) return undefined;
    const { body: _body, headers, ...rest } = call;
    const { "content-type": _contentType, ...others } = headers;
    return { ...rest, method: "GET", headers: others };
  },
};
