/** Calling over gRPC: a method per operation, requests and answers as bytes. */
import { ProtocolError } from "../../model/errors.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { RpcCalling } from "../contract.ts";
import { unreadable } from "../shared/answers.ts";
import { withoutNumber } from "../shared/numbered-event.ts";
import { heardStatus, rpcMetadata } from "../shared/rpc-calling.ts";
import { CODE_OF_GRPC_STATUS } from "./call-errors.ts";
import { METHOD_NAMES, paramsOf } from "./call-json-rpc.ts";
import { readFrame, readOutcome, type WholeKind } from "./call-read.ts";
import { REQUEST_NAMES, SERVICE } from "./proto.ts";
import { fromBytes, toBytes, type WireName } from "./schema.ts";
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
} as const satisfies Record<WholeKind, WireName | undefined>;

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
        metadata: { ...rpcMetadata(operation, target, "a2a-extensions"), "a2a-version": VERSION },
        message: toBytes(REQUEST_NAMES[kind], paramsOf(operation, target)),
      },
      losses: NO_LOSSES,
    };
  },

  decode(kind, message) {
    const name = ANSWER_NAMES[kind];
    return { value: readOutcome(kind, name === undefined ? undefined : read(name, message)), losses: NO_LOSSES };
  },

  decodeFrame(message) {
    const frame = readFrame(read("StreamResponse", message), undefined);
    return { value: withoutNumber(frame.event), losses: NO_LOSSES };
  },

  decodeFailure: (status) => heardStatus(status, (name) => CODE_OF_GRPC_STATUS[name]),
};

function read(name: WireName, message: Uint8Array): unknown {
  try {
    return fromBytes(name, message);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw unreadable(`it is no ${name}`);
  }
}
