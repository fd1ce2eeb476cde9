/** gRPC: one operation per method, binary messages. 0.3 has no tenants, so metadata may name an agent. */

import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Loss } from "../../model/loss.ts";
import type { OperationKind, StreamFrame } from "../../model/operation.ts";
import { RPC_CODES, type RpcReply, type RpcRequest, type RpcStatus } from "../../wire/rpc.ts";
import type { AgentService, RpcServing, ServeContext } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { toRpcStatus } from "../shared/grpc/status.ts";
import { embedNumber, type RpcFraming, rpcStreamReply } from "../shared/grpc/stream.ts";
import { toProtoText } from "../shared/proto/proto-file.ts";
import { ERRORS } from "./errors.ts";
import { isFrameStream, type ProtoReply, type ProtoResponse, serveRequest } from "./invoke.ts";
import { toProtoCard } from "./proto/card.ts";
import { toProtoEvent } from "./proto/encode.ts";
import { isStreaming, METHODS, PROTO_FILE, type ProtoKind, SERVICE } from "./proto/grpc-service.ts";
import { REQUEST_NAMES } from "./proto/requests.ts";
import { fromBytes, toBytes } from "./proto/schema.ts";
import { requestedExtensions, requireSameVersion, VERSION } from "./service-parameters.ts";

const NOTHING = new Uint8Array(0);
const KIND_OF_METHOD: ReadonlyMap<string, ProtoKind> = new Map(Object.entries(METHODS));

export const grpc: RpcServing = {
  version: VERSION,
  service: SERVICE,
  methods: Object.fromEntries(
    Object.entries(METHODS).map(([method, kind]) => [method, { streams: isStreaming(kind) }]),
  ),
  descriptors: async () => (await import("./proto/descriptor.generated.ts")).DESCRIPTORS,
  source: () => ({ path: PROTO_FILE.path, text: toProtoText(PROTO_FILE) }),

  async handle(request, context): Promise<RpcReply> {
    try {
      requireSameVersion(request.metadata);
      const service = serviceFor(request, context);
      if (service === undefined) return { kind: "failure", status: NO_SUCH_AGENT };
      const kind = kindOf(request.method);
      const served = await serve(kind, request, context, service);
      if (!isFrameStream(served.answer)) {
        return { kind: "message", metadata: served.headers, message: bytesOf(served.answer) };
      }
      const numbered = requestedExtensions(request.metadata).includes(EXTENSIONS.replay);
      return rpcStreamReply(served.answer, framingFor(kind, numbered, context), served.headers);
    } catch (error) {
      return { kind: "failure", status: statusOf(error) };
    }
  },

  refuse: statusOf,
};

const NO_SUCH_AGENT: RpcStatus = { code: RPC_CODES.NOT_FOUND, message: "There is no agent of that name here." };

function serviceFor({ metadata }: RpcRequest, context: ServeContext): AgentService | undefined {
  const named = metadata["x-agent"];
  return named === undefined || named === "" ? context.service : context.agentOfTenant(named);
}

function kindOf(method: string): ProtoKind {
  const kind = KIND_OF_METHOD.get(method);
  if (kind !== undefined) return kind;
  throw new ProtocolError("METHOD_NOT_FOUND", "Method not found in A2A 0.3.", { metadata: { method } });
}

async function serve(
  kind: ProtoKind,
  { metadata, message }: RpcRequest,
  context: ServeContext,
  service: AgentService,
): Promise<ProtoReply> {
  const { maxDepth, maxParts, maxValues } = context.limits;
  const request = fromBytes(REQUEST_NAMES[kind], message, { maxDepth, maxValues });
  try {
    return await serveRequest(kind, request, metadata, context, { maxItems: maxParts }, service);
  } catch (error) {
    if (kind !== "extended-card" || !isWithoutExtendedCard(error)) throw error;
    return { kind, answer: publicCard(service, context), headers: undefined };
  }
}

function isWithoutExtendedCard(error: unknown): boolean {
  if (!ProtocolError.is(error)) return false;
  return error.code === "UNSUPPORTED_OPERATION" || error.code === "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
}

/** gRPC has no well-known path for the public card, so `GetAgentCard` returns it if there is no extended one. */
function publicCard({ card }: AgentService, context: ServeContext): ProtoResponse {
  const { value, losses } = toProtoCard(card);
  if (losses.length > 0) context.report(losses);
  return { name: "AgentCard", value };
}

function bytesOf(answer: ProtoResponse): Uint8Array {
  return answer.name === "nothing" ? NOTHING : toBytes(answer.name, answer.value);
}

function statusOf(error: unknown): RpcStatus {
  const shown = toPublicError(error);
  return toRpcStatus(shown, ERRORS[shown.code].grpcStatus);
}

function framingFor(kind: OperationKind, numbered: boolean, { report }: ServeContext): RpcFraming {
  const closesOnInput = kind === "stream";
  return {
    encode(frame: StreamFrame) {
      const losses: Loss[] = [];
      const event = toProtoEvent(numbered ? embedNumber(frame) : frame.event, losses, closesOnInput);
      if (losses.length > 0) report(losses);
      return toBytes("StreamResponse", event);
    },
    statusOf,
  };
}
