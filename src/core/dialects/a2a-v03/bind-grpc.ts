/** gRPC: one operation per method, binary messages. 0.3 has no tenants, so metadata may name an agent. */

import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Loss } from "../../model/loss.ts";
import type { OperationKind } from "../../model/operation.ts";
import { RPC_CODES, type RpcRequest, type RpcStatus } from "../../wire/rpc.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { serveGrpc } from "../shared/grpc/serving.ts";
import { embedNumber, type RpcFraming, rpcStreamReply } from "../shared/grpc/stream.ts";
import { ERRORS } from "./errors.ts";
import { isFrameStream, type ProtoReply, serveRequest } from "./invoke.ts";
import { toProtoCard } from "./proto/card.ts";
import { toProtoEvent } from "./proto/encode.ts";
import { kindOfMethod, PROTO_FILE, type ProtoKind, RESPONSE_NAMES } from "./proto/grpc-service.ts";
import { REQUEST_NAMES } from "./proto/requests.ts";
import { fromBytes, type ProtoName, toBytes } from "./proto/schema.ts";
import { requestedExtensions, requireSameVersion, VERSION } from "./service-parameters.ts";

const NOTHING = new Uint8Array(0);

export const grpc = serveGrpc({
  version: VERSION,
  file: PROTO_FILE,
  errors: ERRORS,
  descriptors: async () => (await import("./proto/descriptor.generated.ts")).DESCRIPTORS,

  async answer(request, context, statusOf) {
    const { method, metadata } = request;
    requireSameVersion(metadata);
    const named = metadata["x-agent"] ?? "";
    const service = named === "" ? context.service : context.agentOfTenant(named);
    if (service === undefined) return { kind: "failure", status: NO_SUCH_AGENT };
    const kind = kindOfMethod(method);
    const { answer, headers } = await serve(kind, request, context, service);
    if (isFrameStream(answer)) {
      const numbered = requestedExtensions(metadata).includes(EXTENSIONS.replay);
      return rpcStreamReply(answer, { encode: encoderFor(kind, numbered, context), statusOf }, headers);
    }
    const message = answer === undefined ? NOTHING : toBytes(RESPONSE_NAMES[kind] as ProtoName, answer);
    return { kind: "message", metadata: headers, message };
  },
});

const NO_SUCH_AGENT: RpcStatus = { code: RPC_CODES.NOT_FOUND, message: "There is no agent of that name here." };

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
    // gRPC has no well-known path for the public card, so `GetAgentCard` returns it if there is no extended one.
    const { value, losses } = toProtoCard(service.card);
    if (losses.length > 0) context.report(losses);
    return { kind, answer: value, headers: undefined };
  }
}

function isWithoutExtendedCard(error: unknown): boolean {
  if (!ProtocolError.is(error)) return false;
  return error.code === "UNSUPPORTED_OPERATION" || error.code === "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
}

function encoderFor(kind: OperationKind, numbered: boolean, { report }: ServeContext): RpcFraming["encode"] {
  return (frame) => {
    const losses: Loss[] = [];
    const event = toProtoEvent(numbered ? embedNumber(frame) : frame.event, losses, kind === "stream");
    if (losses.length > 0) report(losses);
    return toBytes("StreamResponse", event);
  };
}
