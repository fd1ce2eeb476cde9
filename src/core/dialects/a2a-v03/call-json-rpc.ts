/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, NO_LOSSES, toLoss } from "../../model/loss.ts";
import type { Operation, SendConfiguration } from "../../model/operation.ts";
import { canParseUrl } from "../../model/url.ts";
import type { ExchangeCall } from "../../wire/exchange.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { asGet, decodeEnvelope, decodeFrameEnvelope, jsonRpcBody, jsonRpcCall } from "../shared/http/calling.ts";
import { decodeError } from "./errors.ts";
import { decodeFrame, decodeOutcome, methodOf } from "./json/decode.ts";
import { toWireMessage, toWirePushConfig, toWireTaskPushConfig } from "./json/encode.ts";
import { LOSSES } from "./losses.ts";
import { serviceHeaders, VERSION } from "./service-parameters.ts";

type SupportedOperation = Exclude<Operation, { readonly kind: "list" }>;

/** Undefined members are omitted by `JSON.stringify`. */
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

/** The default of `blocking` is not defined, and before 0.2.6 the list of modes was required. */
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

const EXTENDED_CARD_REQUEST = jsonRpcBody(methodOf("extended-card"), undefined);

interface JsonRpcCalling extends ExchangeCalling {
  /** 0.2 has the extended card at a separate URL. */
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
    const headers = serviceHeaders(operation, target);
    const value = jsonRpcCall(methodOf(operation.kind), paramsOf(operation), target, headers);
    return { value, losses: lossesOf(operation, target) };
  },

  alternative(call) {
    if (call.body !== EXTENDED_CARD_REQUEST || !canParseUrl(call.url)) return undefined;
    return asGet({ ...call, url: new URL("agent/authenticatedExtendedCard", parentOf(call.url)).href });
  },

  decode(kind, response) {
    const read = (result: unknown) => decodeOutcome(kind, result);
    return decodeEnvelope(response, decodeError, read, (value) => {
      if (kind === "push-delete") return read(undefined);
      // The response to the 0.2 alternative has no envelope.
      return kind === "extended-card" && isObject(value) ? read(value) : undefined;
    });
  },

  decodeFrame: ({ data, id }) => decodeFrame(decodeFrameEnvelope(data, decodeError), id),
};

/** `{url}/../`, as 0.2 defines it. */
function parentOf(url: string): string {
  return new URL("..", url.endsWith("/") ? url : `${url}/`).href;
}
