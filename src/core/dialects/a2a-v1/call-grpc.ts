/** Calling over gRPC: one method per operation, binary requests and responses. */

import { NO_LOSSES } from "../../model/loss.ts";
import type { RpcCalling } from "../contract.ts";
import { CODE_OF_GRPC_STATUS, callMetadata, decodeResponse, decodeStatus } from "../shared/grpc/status.ts";
import { extractNumber } from "../shared/grpc/stream.ts";
import { paramsOf } from "./call-json-rpc.ts";
import { decodeFrame, decodeOutcome, methodOf } from "./decode.ts";
import { REQUEST_NAMES, RESPONSE_NAMES, SERVICE } from "./proto/grpc-service.ts";
import { fromBytes, toBytes, type WireName } from "./proto/schema.ts";
import { VERSION } from "./service-parameters.ts";

export const grpcCalling: RpcCalling = {
  carrier: "rpc",
  binding: "GRPC",
  version: VERSION,

  encode(operation, target) {
    const { kind } = operation;
    return {
      value: {
        service: SERVICE,
        method: methodOf(kind),
        metadata: { ...callMetadata(operation, target, "a2a-extensions"), "a2a-version": VERSION },
        message: toBytes(REQUEST_NAMES[kind], paramsOf(operation, target)),
      },
      losses: NO_LOSSES,
    };
  },

  decode(kind, message) {
    const name = RESPONSE_NAMES[kind];
    const value = name === "google.protobuf.Empty" ? undefined : read(name, message);
    return decodeOutcome(kind, value);
  },

  decodeFrame(message) {
    const { losses, value } = decodeFrame(read("StreamResponse", message), undefined);
    return { value: value && extractNumber(value.event), losses };
  },

  decodeFailure: (status) => decodeStatus(status, (name) => CODE_OF_GRPC_STATUS[name]),
};

function read(name: WireName, message: Uint8Array): unknown {
  return decodeResponse(name, () => fromBytes(name, message));
}
