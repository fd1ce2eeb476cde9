/** Calling over gRPC: a method per operation, requests and answers as bytes. */
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import { RPC_CODES, type RpcStatus } from "../../wire/rpc.ts";
import type { CallTarget, RpcCalling } from "../contract.ts";
import { unreadable } from "../shared/answers.ts";
import { readErrorDetails } from "../shared/error-details.ts";
import { withoutNumber } from "../shared/numbered-event.ts";
import { detailsIn } from "../shared/rpc-status.ts";
import { CODE_OF_GRPC_STATUS } from "./call-errors.ts";
import { isStreaming } from "./call-headers.ts";
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

/** Streams are asked to number their events, which only works inside of them here. */
function metadataOf(operation: Operation, target: CallTarget): Record<string, string> {
  const metadata: Record<string, string> = { ...target.headers, "a2a-version": VERSION };
  const extensions = isStreaming(operation)
    ? [...new Set([...target.extensions, EXTENSIONS.replay])]
    : target.extensions;
  if (extensions.length > 0) metadata["a2a-extensions"] = extensions.join(",");
  if (target.idempotencyKey !== undefined) metadata["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    metadata["last-event-id"] = String(operation.after);
  }
  return metadata;
}

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
        metadata: metadataOf(operation, target),
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

  decodeFailure,
};

function read(name: WireName, message: Uint8Array): unknown {
  try {
    return fromBytes(name, message);
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw unreadable(`it is no ${name}`);
  }
}

const NAME_OF_CODE = new Map<number, string>(Object.entries(RPC_CODES).map(([name, code]) => [code, name]));

function decodeFailure(status: RpcStatus): ProtocolError {
  const given = detailsIn(status);
  const details = readErrorDetails(given);
  const name = NAME_OF_CODE.get(status.code) ?? "UNKNOWN";
  const code = details.code ?? CODE_OF_GRPC_STATUS[name] ?? "INTERNAL_ERROR";
  const message = status.message === "" ? `The agent refused with gRPC status ${name} only.` : status.message;
  return new ProtocolError(code, message, {
    ...(details.metadata === undefined ? {} : { metadata: details.metadata }),
    ...(details.violations === undefined ? {} : { violations: details.violations }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: details.retryAfter }),
    ...(given.length === 0 ? {} : { data: given }),
  });
}
