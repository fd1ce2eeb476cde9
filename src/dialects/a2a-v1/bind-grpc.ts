/** gRPC: one operation per method, the same messages in binary. Agents share the endpoint; the tenant selects one. */

import { EXTENSIONS } from "../../model/extensions.ts";
import type { RpcMetadata, RpcReply, RpcStatus } from "../../wire/rpc.ts";
import type { RpcServing } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { toRpcStatus } from "../shared/grpc/status.ts";
import { embedNumber, type RpcFraming, rpcStreamReply } from "../shared/grpc/stream.ts";
import { toProtoText } from "../shared/proto/proto-file.ts";
import { kindOfMethod, METHODS } from "./decode.ts";
import { toListResponse, type UnaryAnswer } from "./encode.ts";
import { ERRORS } from "./errors.ts";
import { invoke } from "./invoke.ts";
import { PROTO_FILE, REQUEST_NAMES, SERVICE } from "./proto/grpc-service.ts";
import { fromBytes, toBytes } from "./proto/schema.ts";
import { requestedExtensions, requireSameVersion, VERSION } from "./service-parameters.ts";

const NOTHING = new Uint8Array(0);

export const grpc: RpcServing = {
  version: VERSION,
  service: SERVICE,
  methods: Object.fromEntries(
    Object.entries(METHODS).map(([method, kind]) => [method, { streams: kind === "stream" || kind === "subscribe" }]),
  ),
  descriptors: async () => (await import("./proto/descriptor.generated.ts")).DESCRIPTORS,
  source: () => ({ path: PROTO_FILE.path, text: toProtoText(PROTO_FILE) }),

  async handle({ method, metadata, message }, context): Promise<RpcReply> {
    try {
      requireSameVersion(metadata);
      const kind = kindOfMethod(method);
      const { maxDepth, maxParts, maxValues } = context.limits;
      const request = fromBytes(REQUEST_NAMES[kind], message, { maxDepth, maxValues });
      const { answer, headers } = await invoke(kind, request, metadata, context, { maxItems: maxParts });
      if (answer.kind === "stream" || answer.kind === "subscribe") {
        const numbered = requestedExtensions(metadata).includes(EXTENSIONS.replay);
        return rpcStreamReply(answer.outcome, numbered ? NUMBERED_FRAMING : FRAMING, headers);
      }
      return messageReply(encodeBytes(answer), headers);
    } catch (error) {
      return { kind: "failure", status: statusOf(error) };
    }
  },

  refuse: statusOf,
};

function messageReply(message: Uint8Array, metadata: RpcMetadata | undefined): RpcReply {
  return { kind: "message", metadata, message };
}

function statusOf(error: unknown): RpcStatus {
  const shown = toPublicError(error);
  return toRpcStatus(shown, ERRORS[shown.code].grpcStatus);
}

function encodeBytes(answer: UnaryAnswer): Uint8Array {
  switch (answer.kind) {
    case "send":
      return toBytes("SendMessageResponse", answer.outcome);
    case "get":
    case "cancel":
      return toBytes("Task", answer.outcome);
    case "list":
      return toBytes("ListTasksResponse", toListResponse(answer.operation, answer.outcome));
    case "push-create":
    case "push-get":
      return toBytes("TaskPushNotificationConfig", answer.outcome);
    case "push-list":
      return toBytes("ListTaskPushNotificationConfigsResponse", answer.outcome);
    case "push-delete":
      return NOTHING;
    case "extended-card":
      return toBytes("AgentCard", answer.outcome);
  }
}

const FRAMING: RpcFraming = {
  encode: ({ event }) => toBytes("StreamResponse", event),
  statusOf,
};

const NUMBERED_FRAMING: RpcFraming = {
  encode: (frame) => toBytes("StreamResponse", embedNumber(frame)),
  statusOf,
};
