/** Calling over plain HTTP: one path per operation, streams as SSE of bare JSON. */

import { ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind, Outcomes, SendConfiguration } from "../../model/operation.ts";
import type { BufferedResponse, ExchangeCalling } from "../contract.ts";
import { callHeaders, type HttpCall, toExchangeCall } from "../shared/http/calling.ts";
import { readResponse } from "../shared/json-members.ts";
import { readTask } from "../shared/legacy/decode.ts";
import { reportLostRequest, toMessage } from "../shared/legacy/encode.ts";
import { createFrame, invalidResponse, parseResponse } from "../shared/responses.ts";
import { BINDING, VERSION } from "./card.ts";
import { readStreamEvent } from "./decode.ts";
import { FORM } from "./encode.ts";
import { decodeError, decodeStreamError } from "./errors.ts";
import { HTTP_PREFIX } from "./http-routes.ts";
import { LOSSES } from "./losses.ts";

function routeOf(operation: Operation, losses: Loss[]): HttpCall {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { configuration, kind, message, metadata } = operation;
      if (configuration !== undefined) reportLostConfiguration(configuration, losses);
      const body = { message: toMessage(message, "message", losses, FORM), metadata };
      return { method: "POST", path: kind === "send" ? `/${HTTP_PREFIX}/send` : `/${HTTP_PREFIX}/sendSubscribe`, body };
    }
    case "get": {
      const { historyLength, id } = operation;
      // An agent that does not support this returns more than was requested.
      return { method: "GET", path: taskPath(id), query: { historyLength } };
    }
    case "cancel":
      return { method: "POST", path: `${taskPath(operation.id)}/cancel`, body: { metadata: operation.metadata } };
    case "subscribe":
      return { method: "GET", path: `${taskPath(operation.id)}/subscribe` };
    default:
      throw new ProtocolError(
        "UNSUPPORTED_OPERATION",
        `This agent's dialect does not have the operation ${operation.kind}.`,
      );
  }
}

function reportLostConfiguration(configuration: SendConfiguration, losses: Loss[]): void {
  const { historyLength, taskPushNotificationConfig } = configuration;
  if (historyLength !== undefined) losses.push(toLoss(LOSSES.historyLength, "configuration.historyLength"));
  if (taskPushNotificationConfig !== undefined) {
    losses.push(toLoss(LOSSES.pushConfig, "configuration.taskPushNotificationConfig"));
  }
}

function taskPath(id: string): string {
  return `/${HTTP_PREFIX}/${encodeURIComponent(id)}`;
}

export const httpCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: BINDING,
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    reportLostRequest(operation, target, losses);
    const route = routeOf(operation, losses);
    return { value: toExchangeCall(route, target.url, callHeaders(operation, target)), losses };
  },

  decode<Kind extends Exclude<OperationKind, "stream" | "subscribe">>(kind: Kind, { status, text }: BufferedResponse) {
    const value = parseResponse(text);
    if (status < 200 || status > 299) throw decodeError(kind, value, status);
    if (value === undefined) throw invalidResponse("it is not JSON");
    if (isObject(value) && isObject(value.error)) throw decodeError(kind, value, status);
    const { losses, value: task } = readResponse(value, (members) => readTask(members, FORM));
    // Every response of this dialect is a task.
    return { value: (kind === "send" ? { task } : task) as Outcomes[Kind], losses };
  },

  decodeFrame({ data, event, id }) {
    const value = parseResponse(data);
    if (event === "error" || (isObject(value) && isObject(value.error))) throw decodeStreamError(value, data);
    if (value === undefined) throw invalidResponse("a frame of the stream is not JSON");
    const read = readResponse(value, readStreamEvent);
    return { value: read.value && createFrame(read.value, id), losses: read.losses };
  },
};
