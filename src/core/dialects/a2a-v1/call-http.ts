/** Calling over HTTP+JSON: one path and verb per operation, streams as SSE of bare events. */

import { isObject } from "../../model/json.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { asGet, decodeBareFrame, type HttpCall, toExchangeCall } from "../shared/http/calling.ts";
import { invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeFrame, decodeOutcome } from "./decode.ts";
import { decodeError } from "./errors.ts";
import { serviceHeaders, tenantOf, toTimestamp, VERSION } from "./service-parameters.ts";

const MEDIA_TYPE = "application/a2a+json";
const ACCEPT = `${MEDIA_TYPE}, application/json`;

function routeOf(operation: Operation): HttpCall {
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

interface HttpCalling extends ExchangeCalling {
  /** Subscribing is POST in the specification's text and GET in its proto; some peers support only one of them. */
  alternative(call: ExchangeCall): ExchangeCall | undefined;
}

export const httpCalling: HttpCalling = {
  carrier: "exchange",
  binding: "HTTP+JSON",
  version: VERSION,

  encode(operation, target) {
    const tenant = tenantOf(target);
    const route = routeOf(operation);
    const path = tenant === undefined ? route.path : `/${encodeURIComponent(tenant)}${route.path}`;
    const headers = serviceHeaders(operation, target, ACCEPT);
    return { value: toExchangeCall({ ...route, path }, target.url, headers, MEDIA_TYPE), losses: NO_LOSSES };
  },

  decode(kind, { status, text }) {
    const value = parseResponse(text);
    if (status < 200 || status > 299) {
      if (!isObject(value)) throw httpStatusError(status);
      throw decodeError(isObject(value.error) ? value.error : value, status);
    }
    if (kind !== "push-delete" && value === undefined) throw invalidResponse("it is not JSON");
    return decodeOutcome(kind, value);
  },

  decodeFrame(frame) {
    return decodeFrame(decodeBareFrame(frame, decodeError), frame.id);
  },

  alternative(call) {
    return call.method === "POST" && call.url.split("?", 1)[0]?.endsWith(":subscribe") ? asGet(call) : undefined;
  },
};
