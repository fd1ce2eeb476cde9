/** Shared by bindings over gRPC: one operation per method, errors as statuses. */

import type { ErrorCode } from "../../../model/errors.ts";
import type { RpcCodeName, RpcReply, RpcRequest, RpcStatus } from "../../../wire/rpc.ts";
import type { RpcServing, ServeContext } from "../../contract.ts";
import { toPublicError } from "../errors.ts";
import { type ProtoFile, toProtoText } from "../proto/proto-file.ts";
import { toRpcStatus } from "./status.ts";

type StatusOf = (error: unknown) => RpcStatus;

interface GrpcBinding extends Pick<RpcServing, "version" | "descriptors"> {
  readonly file: ProtoFile;
  readonly errors: Readonly<Record<ErrorCode, { readonly grpcStatus: RpcCodeName }>>;
  /** Rejects to refuse the request. `statusOf` encodes a failure of a stream. */
  answer(request: RpcRequest, context: ServeContext, statusOf: StatusOf): Promise<RpcReply>;
}

export function serveGrpc({ answer, descriptors, errors, file, version }: GrpcBinding): RpcServing {
  const { name, methods } = file.service;
  const statusOf: StatusOf = (error) => {
    const shown = toPublicError(error);
    return toRpcStatus(shown, errors[shown.code].grpcStatus);
  };
  const toFailure = (error: unknown): RpcReply => ({ kind: "failure", status: statusOf(error) });
  return {
    version,
    service: `${file.package}.${name}`,
    methods: Object.fromEntries(methods.map((method) => [method.name, { streams: method.streams }])),
    descriptors,
    source: () => ({ path: file.path, text: toProtoText(file) }),
    handle: (request, context) => answer(request, context, statusOf).catch(toFailure),
    refuse: statusOf,
  };
}
