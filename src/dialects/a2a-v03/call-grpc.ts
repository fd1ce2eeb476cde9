/** Calling over gRPC: one method per operation, binary requests and responses. */

import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { RpcCodeName, RpcStatus } from "../../wire/rpc.ts";
import type { RpcCalling } from "../contract.ts";
import { callMetadata, decodeStatus } from "../shared/grpc/status.ts";
import { extractNumber } from "../shared/grpc/stream.ts";
import { invalidResponse } from "../shared/responses.ts";
import { LOSSES, PROTO_LOSSES } from "./losses.ts";
import { decodeProtoEvent, decodeProtoOutcome, type UnaryKind } from "./proto/decode.ts";
import { METHOD_NAMES, RESPONSE_NAMES, SERVICE } from "./proto/grpc-service.ts";
import { encodeRequest, type ProtoRequest, REQUEST_NAMES } from "./proto/requests.ts";
import { fromBytes, type ProtoName, toBytes } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

/** In binary, most peers cannot distinguish an explicit false or zero from an absent field. */
function omittedDefaults(operation: Operation): readonly Loss[] {
  const losses: Loss[] = [];
  if (operation.kind === "get") {
    if (operation.historyLength === 0) losses.push(toLoss(PROTO_LOSSES.noHistory, "historyLength"));
  } else if (operation.kind === "send" || operation.kind === "stream") {
    const { historyLength } = operation.configuration ?? {};
    if (historyLength === 0) losses.push(toLoss(PROTO_LOSSES.noHistory, "configuration.historyLength"));
  }
  return losses;
}

export const grpcCalling: RpcCalling = {
  carrier: "rpc",
  binding: "GRPC",
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    const asked = encodeRequest(operation, losses);
    losses.push(...omittedDefaults(operation));
    if (target.tenant !== undefined && target.tenant !== "") losses.push(toLoss(LOSSES.tenant, "call.tenant"));
    const metadata = callMetadata(operation, target, "x-a2a-extensions");
    return {
      value: { service: SERVICE, method: METHOD_NAMES[asked.kind], metadata, message: requestBytes(asked) },
      losses,
    };
  },

  decode(kind, message) {
    if (kind === "push-delete") return decodeProtoOutcome(kind, undefined);
    return decodeProtoOutcome(kind, read(responseName(kind), message));
  },

  decodeFrame(message) {
    const { value, losses } = decodeProtoEvent(read("StreamResponse", message));
    return { value: extractNumber(value), losses };
  },

  decodeFailure,
};

function requestBytes({ kind, request }: ProtoRequest): Uint8Array {
  return toBytes(REQUEST_NAMES[kind], request);
}

function responseName(kind: UnaryKind): ProtoName {
  if (kind === "list" || kind === "push-delete") throw invalidResponse("0.3 has no such answer");
  return RESPONSE_NAMES[kind];
}

function read(name: ProtoName, message: Uint8Array): unknown {
  try {
    return fromBytes(name, message);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw invalidResponse(`it is not a ${name}`);
  }
}

/** For errors without a reason. Several errors share a status; the most common one is used. */
const CODE_OF_STATUS: Readonly<Partial<Record<RpcCodeName, ErrorCode>>> = {
  NOT_FOUND: "TASK_NOT_FOUND",
  INVALID_ARGUMENT: "INVALID_PARAMS",
  FAILED_PRECONDITION: "TASK_NOT_CANCELABLE",
  UNIMPLEMENTED: "UNSUPPORTED_OPERATION",
  UNAUTHENTICATED: "UNAUTHENTICATED",
  PERMISSION_DENIED: "PERMISSION_DENIED",
  RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
  UNAVAILABLE: "UNAVAILABLE",
  DEADLINE_EXCEEDED: "UNAVAILABLE",
};

/** Messages of the official Python library start with the name of the error. */
const CODE_OF_PREFIX: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ["TaskNotFoundError", "TASK_NOT_FOUND"],
  ["TaskNotCancelableError", "TASK_NOT_CANCELABLE"],
  ["PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED"],
  ["UnsupportedOperationError", "UNSUPPORTED_OPERATION"],
  ["ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED"],
  ["InvalidAgentResponseError", "INVALID_AGENT_RESPONSE"],
  ["AuthenticatedExtendedCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"],
  ["JSONParseError", "PARSE_ERROR"],
  ["InvalidRequestError", "INVALID_REQUEST"],
  ["MethodNotFoundError", "METHOD_NOT_FOUND"],
  ["InvalidParamsError", "INVALID_PARAMS"],
  ["InternalError", "INTERNAL_ERROR"],
]);

/** Official 0.3 servers send no details: the meaning of a status depends on the operation. */
function codeOfStatus(name: RpcCodeName, kind: OperationKind | undefined): ErrorCode | undefined {
  if (name === "UNIMPLEMENTED" && kind?.startsWith("push-") === true) return "PUSH_NOTIFICATION_NOT_SUPPORTED";
  if (name === "FAILED_PRECONDITION" && kind === "extended-card") return "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
  return CODE_OF_STATUS[name];
}

function decodeFailure(status: RpcStatus, kind?: OperationKind): ProtocolError {
  return decodeStatus(status, (name, message) => {
    const prefix = message.slice(0, Math.max(0, message.indexOf(":")));
    return CODE_OF_PREFIX.get(prefix) ?? codeOfStatus(name, kind);
  });
}
