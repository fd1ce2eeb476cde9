/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss, Lossy } from "../../model/loss.ts";
import type { Operation, OperationKind, Outcomes } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { BufferedResponse, ExchangeCalling } from "../contract.ts";
import { callHeaders, decodeEnvelope, decodeFrameEnvelope, jsonRpcCall } from "../shared/http/calling.ts";
import { type Members, readResponse } from "../shared/json-members.ts";
import { readTask } from "../shared/legacy/decode.ts";
import { reportLostRequest, toMessage, toPushConfig } from "../shared/legacy/encode.ts";
import { createFrame, invalidResponse } from "../shared/responses.ts";
import { VERSION } from "./card.ts";
import { readPushConfig, readStreamEvent } from "./decode.ts";
import { FORM } from "./encode.ts";
import { decodeError } from "./errors.ts";

type SendOperation = Extract<Operation, { readonly kind: "send" | "stream" }>;

/** Undefined members are omitted by `JSON.stringify`. */
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

/** The caller chooses the task id here. Default: the message id, which is as unique. */
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
    const read = (inner: Members) => readPushConfig(inner, taskId);
    return { ...members.requiredObject("pushNotificationConfig", read), taskId };
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
    return { value: jsonRpcCall(method, params, target, callHeaders(operation, target)), losses };
  },

  decode<Kind extends UnaryKind>(kind: Kind, response: BufferedResponse) {
    return decodeEnvelope(response, decodeError, (result) => {
      const read = READERS[kind];
      if (read === undefined) throw invalidResponse("0.1 has no such operation");
      return read(result);
    });
  },

  decodeFrame({ data, id }) {
    const { losses, value } = readResponse(decodeFrameEnvelope(data, decodeError), readStreamEvent);
    return { value: value && createFrame(value, id), losses };
  },
};
