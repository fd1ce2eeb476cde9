/** Calling over gRPC: one method per operation, binary requests and responses. */

import type { ErrorCode, ProtocolError } from "../../model/errors.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { RpcCodeName, RpcStatus } from "../../wire/rpc.ts";
import type { RpcCalling } from "../contract.ts";
import { CODE_OF_GRPC_STATUS, callMetadata, decodeResponse, decodeStatus } from "../shared/grpc/status.ts";
import { extractNumber } from "../shared/grpc/stream.ts";
import { invalidResponse } from "../shared/responses.ts";
import { LOSSES, PROTO_LOSSES } from "./losses.ts";
import { decodeProtoEvent, decodeProtoOutcome } from "./proto/decode.ts";
import { methodOf, type ProtoKind, RESPONSE_NAMES, SERVICE } from "./proto/grpc-service.ts";
import { encodeRequest, REQUEST_NAMES } from "./proto/requests.ts";
import { fromBytes, type ProtoName, toBytes } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

export const grpcCalling: RpcCalling = {
  carrier: "rpc",
  binding: "GRPC",
  version: VERSION,

  encode(operation, target) {
    const losses: Loss[] = [];
    const request = encodeRequest(operation, losses);
    // `encodeRequest` refuses lists.
    const kind = operation.kind as ProtoKind;
    reportZeroLength(operation, losses);
    if (target.tenant !== undefined && target.tenant !== "") losses.push(toLoss(LOSSES.tenant, "call.tenant"));
    const metadata = callMetadata(operation, target, "x-a2a-extensions");
    const message = toBytes(REQUEST_NAMES[kind], request);
    return { value: { service: SERVICE, method: methodOf(kind), metadata, message }, losses };
  },

  decode(kind, message) {
    if (kind === "push-delete") return decodeProtoOutcome(kind, undefined);
    if (kind === "list") throw invalidResponse("0.3 has no such answer");
    return decodeProtoOutcome(kind, read(RESPONSE_NAMES[kind as Exclude<ProtoKind, "push-delete">], message));
  },

  decodeFrame(message) {
    const { value, losses } = decodeProtoEvent(read("StreamResponse", message));
    return { value: value && extractNumber(value), losses };
  },

  decodeFailure,
};

/** In binary, most peers cannot distinguish an explicit zero from an absent field. */
function reportZeroLength(operation: Operation, losses: Loss[]): void {
  const lose = (path: string) => losses.push(toLoss(PROTO_LOSSES.noHistory, path));
  if (operation.kind === "get" && operation.historyLength === 0) lose("historyLength");
  if (operation.kind !== "send" && operation.kind !== "stream") return;
  if (operation.configuration?.historyLength === 0) lose("configuration.historyLength");
}

function read(name: ProtoName, message: Uint8Array): unknown {
  return decodeResponse(name, () => fromBytes(name, message));
}

const CODE_OF_STATUS: Readonly<Partial<Record<RpcCodeName, ErrorCode>>> = {
  ...CODE_OF_GRPC_STATUS,
  FAILED_PRECONDITION: "TASK_NOT_CANCELABLE",
  UNIMPLEMENTED: "UNSUPPORTED_OPERATION",
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
