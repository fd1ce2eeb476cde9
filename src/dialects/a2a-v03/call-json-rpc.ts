/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, NO_LOSSES, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind, SendConfiguration } from "../../model/operation.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { httpStatusError } from "../shared/errors.ts";
import { invalidResponse, parseResponse } from "../shared/responses.ts";
import { decodeError } from "./errors.ts";
import { decodeFrame, decodeOutcome } from "./json/decode.ts";
import { toWireMessage, toWirePushConfig, toWireTaskPushConfig } from "./json/encode.ts";
import { LOSSES } from "./losses.ts";
import { callHeaders, VERSION } from "./service-parameters.ts";

type SupportedOperation = Exclude<Operation, { readonly kind: "list" }>;

const METHOD_NAMES = {
  send: "message/send",
  stream: "message/stream",
  get: "tasks/get",
  cancel: "tasks/cancel",
  subscribe: "tasks/resubscribe",
  "push-create": "tasks/pushNotificationConfig/set",
  "push-get": "tasks/pushNotificationConfig/get",
  "push-list": "tasks/pushNotificationConfig/list",
  "push-delete": "tasks/pushNotificationConfig/delete",
  "extended-card": "agent/getAuthenticatedExtendedCard",
} as const satisfies Record<Exclude<OperationKind, "list">, string>;

/** Members that are undefined are left out by `JSON.stringify`. */
function paramsOf(operation: SupportedOperation): object | undefined {
  switch (operation.kind) {
    case "send":
    case "stream":
      return {
        message: toWireMessage(operation.message),
        configuration: toWireConfiguration(operation.configuration),
        metadata: operation.metadata,
      };
    case "get":
      return { id: operation.id, historyLength: operation.historyLength };
    case "cancel":
      return { id: operation.id, metadata: operation.metadata };
    case "subscribe":
      return { id: operation.id };
    case "push-create":
      return toWireTaskPushConfig(operation.config, operation.taskId);
    case "push-get":
    case "push-delete":
      return { id: operation.taskId, pushNotificationConfigId: operation.id };
    case "push-list":
      return { id: operation.taskId };
    case "extended-card":
      return undefined;
  }
}

/** What absence of `blocking` means is not settled, and before 0.2.6 the list of modes had to be there. */
function toWireConfiguration(configuration: SendConfiguration = {}): object {
  const {
    acceptedOutputModes = [],
    taskPushNotificationConfig: push,
    historyLength,
    returnImmediately,
  } = configuration;
  return {
    acceptedOutputModes,
    historyLength,
    pushNotificationConfig: push === undefined ? undefined : toWirePushConfig(push),
    blocking: returnImmediately !== true,
  };
}

function lossesOf(operation: SupportedOperation, { tenant }: CallTarget): readonly Loss[] {
  const losses: Loss[] = [];
  if (tenant !== undefined && tenant !== "") losses.push(toLoss(LOSSES.tenant, "call.tenant"));
  if (operation.kind === "push-list") {
    if (operation.pageSize !== undefined) losses.push(toLoss(LOSSES.pushPaging, "push-list.pageSize"));
    if (operation.pageToken !== undefined) losses.push(toLoss(LOSSES.pushPaging, "push-list.pageToken"));
  }
  return losses.length === 0 ? NO_LOSSES : losses;
}

/** Every request has an exchange of its own, so that the id has nothing to tell apart. */
const REQUEST_ID = 1;

const EXTENDED_CARD_REQUEST = JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method: METHOD_NAMES["extended-card"] });

interface JsonRpcCalling extends ExchangeCalling {
  /** 0.2 has the extended card at an address of its own. */
  alternative(call: ExchangeCall): ExchangeCall | undefined;
}

export const jsonRpcCalling: JsonRpcCalling = {
  carrier: "exchange",
  binding: "JSONRPC",
  version: VERSION,

  encode(operation, target) {
    if (operation.kind === "list") {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "Tasks cannot be listed in A2A 0.3.");
    }
    const method = METHOD_NAMES[operation.kind];
    const params = paramsOf(operation);
    const headers = callHeaders(operation, target);
    headers["content-type"] = "application/json";
    return {
      value: {
        method: "POST",
        url: target.url,
        headers,
        body: JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method, params }),
      },
      losses: lossesOf(operation, target),
    };
  },

  alternative({ body, headers, url }) {
    if (body !== EXTENDED_CARD_REQUEST || !URL.canParse(url)) return undefined;
    const { "content-type": _contentType, ...others } = headers;
    return { method: "GET", url: new URL("agent/authenticatedExtendedCard", parentOf(url)).href, headers: others };
  },

  decode(kind, { status, text }) {
    const envelope = parseResponse(text);
    // Which HTTP status goes with an error is not settled, so the envelope is heard first.
    if (isObject(envelope)) {
      if (isObject(envelope.error)) throw decodeError(envelope.error, status);
      if (envelope.result !== undefined) return decodeOutcome(kind, envelope.result);
    }
    if (status < 200 || status > 299)
      throw isObject(envelope) ? decodeError(envelope, status) : httpStatusError(status);
    if (kind === "push-delete") return decodeOutcome(kind, undefined);
    // The answer to the alternative of 0.2 has no envelope.
    if (kind === "extended-card" && isObject(envelope)) return decodeOutcome(kind, envelope);
    throw invalidResponse(envelope === undefined ? "it is not JSON" : "it has neither result nor error");
  },

  decodeFrame({ data, id }) {
    const envelope = parseResponse(data);
    if (!isObject(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
    if (isObject(envelope.error)) throw decodeError(envelope.error, 0);
    if (envelope.result === undefined) throw invalidResponse("a frame of the stream has neither result nor error");
    return decodeFrame(envelope.result, id);
  },
};

/** `{url}/../`, as 0.2 counts it. */
function parentOf(url: string): string {
  return new URL("..", url.endsWith("/") ? url : `${url}/`).href;
}
