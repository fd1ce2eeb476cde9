/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { Loss, Lossy } from "../../model/loss.ts";
import type { Operation, OperationKind, Outcomes } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { readResponse } from "../shared/json-members.ts";
import { readTask } from "../shared/legacy/decode.ts";
import { reportLostRequest, toMessage } from "../shared/legacy/encode.ts";
import { createFrame, invalidResponse, parseResponse } from "../shared/responses.ts";
import { VERSION } from "./card.ts";
import { readPushConfig, readStreamEvent } from "./decode.ts";
import { FORM, toPushConfig } from "./encode.ts";
import { decodeError } from "./errors.ts";

type SendOperation = Extract<Operation, { readonly kind: "send" | "stream" }>;

/** Members that are undefined are left out by `JSON.stringify`. */
function encodeRequest(operation: Operation, losses: Loss[]): { readonly method: string; readonly params: object } {
  switch (operation.kind) {
    case "send":
      return { method: "tasks/send", params: sendParams(operation, losses) };
    case "stream":
      return { method: "tasks/sendSubscribe", params: sendParams(operation, losses) };
    case "get":
      return { method: "tasks/get", params: { id: operation.id, historyLength: operation.historyLength } };
    case "cancel":
      return { method: "tasks/cancel", params: { id: operation.id, metadata: operation.metadata } };
    case "subscribe":
      return { method: "tasks/resubscribe", params: { id: operation.id } };
    case "push-create": {
      const params = { id: operation.taskId, pushNotificationConfig: toPushConfig(operation.config) };
      return { method: "tasks/pushNotification/set", params };
    }
    case "push-get":
      return { method: "tasks/pushNotification/get", params: { id: operation.taskId } };
    default:
      throw new ProtocolError("UNSUPPORTED_OPERATION", `A2A 0.1 does not have the operation ${operation.kind}.`);
  }
}

/** The caller chooses the id of a task here. One who did not choose gets the id of the message, which is as unique. */
function sendParams({ chosenId, configuration, message, metadata }: SendOperation, losses: Loss[]): object {
  const { historyLength, taskPushNotificationConfig } = configuration ?? {};
  return {
    id: message.taskId ?? chosenId ?? message.messageId,
    sessionId: message.contextId,
    message: toMessage(message, "message", losses, FORM),
    pushNotification: taskPushNotificationConfig === undefined ? undefined : toPushConfig(taskPushNotificationConfig),
    historyLength,
    metadata,
  };
}

function callHeaders(operation: Operation, target: CallTarget): Readonly<Record<string, string>> {
  const streams = operation.kind === "stream" || operation.kind === "subscribe";
  const headers: Record<string, string> = {
    ...target.headers,
    accept: streams ? "text/event-stream, application/json" : "application/json",
    "content-type": "application/json",
  };
  if (target.idempotencyKey !== undefined) headers["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    headers["last-event-id"] = String(operation.after);
  }
  return headers;
}

/** Every request has an exchange of its own, so that the id has nothing to tell apart. */
const REQUEST_ID = 1;

type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;
type Readers = { readonly [Kind in UnaryKind]?: (result: unknown) => Lossy<Outcomes[Kind]> };

const READERS: Readers = {
  send: (result) => readResponse(result, (members) => ({ task: readTask(members, FORM) })),
  get: readTaskResponse,
  cancel: readTaskResponse,
  "push-create": readPushResponse,
  "push-get": readPushResponse,
};

function readTaskResponse(result: unknown): Lossy<Task> {
  return readResponse(result, (members) => readTask(members, FORM));
}

function readPushResponse(result: unknown): Lossy<Outcomes["push-get"]> {
  return readResponse(result, (members) => {
    const taskId = members.requiredText("id");
    return { id: taskId, taskId, ...members.requiredObject("pushNotificationConfig", readPushConfig) };
  });
}

export const jsonRpcCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: "JSONRPC",
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    reportLostRequest(operation, target, losses);
    const { method, params } = encodeRequest(operation, losses);
    return {
      value: {
        method: "POST",
        url: target.url,
        headers: callHeaders(operation, target),
        body: JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method, params }),
      },
      losses,
    };
  },

  decode<Kind extends UnaryKind>(kind: Kind, { status, text }: { readonly status: number; readonly text: string }) {
    const envelope = parseResponse(text);
    // Which HTTP status goes with an error is not settled, so the envelope is heard first.
    if (isObject(envelope)) {
      if (isObject(envelope.error)) throw decodeError(envelope.error, status);
      const read = READERS[kind];
      if (envelope.result !== undefined && read !== undefined) return read(envelope.result);
    }
    if (status < 200 || status > 299)
      throw isObject(envelope) ? decodeError(envelope, status) : httpStatusError(status);
    throw invalidResponse(envelope === undefined ? "it is not JSON" : "it has neither result nor error");
  },

  decodeFrame({ data, id }) {
    const envelope = parseResponse(data);
    if (!isObject(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
    if (isObject(envelope.error)) throw decodeError(envelope.error, 0);
    if (envelope.result === undefined) throw invalidResponse("a frame of the stream has neither result nor error");
    const { losses, value } = readResponse(envelope.result, readStreamEvent);
    return { value: createFrame(value, id), losses };
  },
};
