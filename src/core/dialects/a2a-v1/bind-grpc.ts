/** gRPC: one operation per method, the same messages in binary. Agents share the endpoint; the tenant selects one. */

import { EXTENSIONS } from "../../model/extensions.ts";
import { serveGrpc } from "../shared/grpc/serving.ts";
import { embedNumber, type RpcFraming, rpcStreamReply } from "../shared/grpc/stream.ts";
import { kindOfMethod } from "./decode.ts";
import { toListResponse } from "./encode.ts";
import { ERRORS } from "./errors.ts";
import { invoke } from "./invoke.ts";
import { PROTO_FILE, REQUEST_NAMES, RESPONSE_NAMES } from "./proto/grpc-service.ts";
import { fromBytes, toBytes } from "./proto/schema.ts";
import { requestedExtensions, requireSameVersion, VERSION } from "./service-parameters.ts";

const NOTHING = new Uint8Array(0);

export const grpc = serveGrpc({
  version: VERSION,
  file: PROTO_FILE,
  errors: ERRORS,
  descriptors: async () => (await import("./proto/descriptor.generated.ts")).DESCRIPTORS,

  async answer({ method, metadata, message }, context, statusOf) {
    requireSameVersion(metadata);
    const kind = kindOfMethod(method);
    const { maxDepth, maxParts, maxValues } = context.limits;
    const request = fromBytes(REQUEST_NAMES[kind], message, { maxDepth, maxValues });
    // The field has presence, but generated clients set it to zero for "not chosen": a page of no tasks is of no use.
    if (request.pageSize === 0) delete request.pageSize;
    const { answer, headers } = await invoke(kind, request, metadata, context, { maxItems: maxParts });
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      const numbered = requestedExtensions(metadata).includes(EXTENSIONS.replay);
      return rpcStreamReply(answer.outcome, { encode: numbered ? encodeNumbered : encode, statusOf }, headers);
    }
    if (answer.kind === "push-delete") return { kind: "message", metadata: headers, message: NOTHING };
    const outcome = answer.kind === "list" ? toListResponse(answer.operation, answer.outcome) : answer.outcome;
    return { kind: "message", metadata: headers, message: toBytes(RESPONSE_NAMES[answer.kind], outcome) };
  },
});

const encode: RpcFraming["encode"] = ({ event }) => toBytes("StreamResponse", event);
const encodeNumbered: RpcFraming["encode"] = (frame) => toBytes("StreamResponse", embedNumber(frame));
