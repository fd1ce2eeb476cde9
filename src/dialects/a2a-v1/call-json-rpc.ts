/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { isObject } from "../../model/json.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeFrame, decodeOutcome } from "./decode.ts";
import { decodeError } from "./errors.ts";
import { callHeaders, tenantOf, toTimestamp, VERSION } from "./service-parameters.ts";

export const METHOD_NAMES = {
  send: "SendMessage",
  stream: "SendStreamingMessage",
  get: "GetTask",
  list: "ListTasks",
  cancel: "CancelTask",
  subscribe: "SubscribeToTask",
  "push-create": "CreateTaskPushNotificationConfig",
  "push-get": "GetTaskPushNotificationConfig",
  "push-list": "ListTaskPushNotificationConfigs",
  "push-delete": "DeleteTaskPushNotificationConfig",
  "extended-card": "GetExtendedAgentCard",
} as const satisfies Record<OperationKind, string>;

/** Members that are undefined are left out by `JSON.stringify`. */
export function paramsOf(operation: Operation, target: CallTarget): object {
  const tenant = tenantOf(target);
  switch (operation.kind) {
    case "send":
    case "stream":
      return {
        tenant,
        message: operation.message,
        configuration: operation.configuration,
        metadata: operation.metadata,
      };
    case "list": {
      const { kind: _kind, statusTimestampAfter, ...query } = operation;
      return { tenant, ...query, statusTimestampAfter: toTimestamp(statusTimestampAfter) };
    }
    case "subscribe":
      return { tenant, id: operation.id };
    case "push-create":
      return { ...operation.config, tenant, taskId: operation.taskId };
    default: {
      const { kind: _kind, ...members } = operation;
      return { tenant, ...members };
    }
  }
}

/** Every request has an exchange of its own, so that the id has nothing to tell apart. */
const REQUEST_ID = 1;

export const jsonRpcCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: "JSONRPC",
  version: VERSION,

  encode(operation, target) {
    const method = METHOD_NAMES[operation.kind];
    const params = paramsOf(operation, target);
    return {
      value: {
        method: "POST",
        url: target.url,
        headers: { ...callHeaders(operation, target, "application/json"), "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method, params }),
      },
      losses: NO_LOSSES,
    };
  },

  decode(kind, { status, text }) {
    const envelope = parseResponse(text);
    // Which HTTP status goes with an error is not settled, so the envelope is heard first.
    if (isObject(envelope)) {
      if (isObject(envelope.error)) throw decodeError(envelope.error, status);
      if (envelope.result !== undefined) return { value: decodeOutcome(kind, envelope.result), losses: NO_LOSSES };
    }
    if (status < 200 || status > 299)
      throw isObject(envelope) ? decodeError(envelope, status) : httpStatusError(status);
    if (kind === "push-delete") return { value: decodeOutcome(kind, undefined), losses: NO_LOSSES };
    throw invalidResponse(envelope === undefined ? "it is not JSON" : "it has neither result nor error");
  },

  decodeFrame({ data, id }) {
    const envelope = parseResponse(data);
    if (!isObject(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
    if (isObject(envelope.error)) throw decodeError(envelope.error, 0);
    if (envelope.result === undefined) throw invalidResponse("a frame of the stream has neither result nor error");
    return { value: decodeFrame(envelope.result, id), losses: NO_LOSSES };
  },
};
