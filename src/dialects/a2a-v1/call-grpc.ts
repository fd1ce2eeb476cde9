/** Calling over gRPC: one method per operation, binary requests and responses. */

import { ProtocolError } from "../../model/errors.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { RpcCalling } from "../contract.ts";
import { callMetadata, decodeStatus } from "../shared/grpc/status.ts";
import { extractNumber } from "../shared/grpc/stream.ts";
import { invalidResponse } from "../shared/responses.ts";
import { METHOD_NAMES, paramsOf } from "./call-json-rpc.ts";
import { decodeFrame, decodeOutcome, type UnaryKind } from "./decode.ts";
import { CODE_OF_GRPC_STATUS } from "./errors.ts";
import { REQUEST_NAMES, SERVICE } from "./proto/grpc-service.ts";
import { fromBytes, toBytes, type WireName } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

const ANSWER_NAMES = {
  send: "SendMessageResponse",
  get: "Task",
  list: "ListTasksResponse",
  cancel: "Task",
  "push-create": "TaskPushNotificationConfig",
  "push-get": "TaskPushNotificationConfig",
  "push-list": "ListTaskPushNotificationConfigsResponse",
  "push-delete": undefined,
  "extended-card": "AgentCard",
} as const satisfies Record<UnaryKind, WireName | undefined>;

export const grpcCalling: RpcCalling = {
  carrier: "rpc",
  binding: "GRPC",
  version: VERSION,

  encode(operation, target) {
    const { kind } = operation;
    return {
      value: {
        service: SERVICE,
        method: METHOD_NAMES[kind],
        metadata: { ...callMetadata(operation, target, "a2a-extensions"), "a2a-version": VERSION },
        message: toBytes(REQUEST_NAMES[kind], paramsOf(operation, target)),
      },
      losses: NO_LOSSES,
    };
  },

  decode(kind, message) {
    const name = ANSWER_NAMES[kind];
    return { value: decodeOutcome(kind, name === undefined ? undefined : read(name, message)), losses: NO_LOSSES };
  },

  decodeFrame(message) {
    const frame = decodeFrame(read("StreamResponse", message), undefined);
    return { value: extractNumber(frame.event), losses: NO_LOSSES };
  },

  decodeFailure: (status) => decodeStatus(status, (name) => CODE_OF_GRPC_STATUS[name]),
};

function read(name: WireName, message: Uint8Array): unknown {
  try {
    return fromBytes(name, message);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw invalidResponse(`it is not a ${name}`);
  }
}
