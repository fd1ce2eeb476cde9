/** What calling over gRPC has in common: metadata beside the message, and statuses that are not OK. */
import type { ErrorCode, ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Operation } from "../../model/operation.ts";
import { RPC_CODES, type RpcCodeName, type RpcStatus } from "../../wire/rpc.ts";
import type { CallTarget } from "../contract.ts";
import { readErrorDetails } from "./error-details.ts";
import { heardError } from "./heard-error.ts";
import { detailsIn } from "./rpc-status.ts";

/** Streams are asked to number their events, which only works inside of them here. */
export function rpcMetadata(operation: Operation, target: CallTarget, extensionsName: string): Record<string, string> {
  const metadata: Record<string, string> = { ...target.headers };
  const streams = operation.kind === "stream" || operation.kind === "subscribe";
  const extensions = streams ? [...new Set([...target.extensions, EXTENSIONS.replay])] : target.extensions;
  if (extensions.length > 0) metadata[extensionsName] = extensions.join(",");
  if (target.idempotencyKey !== undefined) metadata["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    metadata["last-event-id"] = String(operation.after);
  }
  return metadata;
}

const NAME_OF_CODE = new Map<number, RpcCodeName>(
  Object.entries(RPC_CODES).map(([name, code]) => [code, name as RpcCodeName]),
);

/** A reason in the details decides, then what the dialect makes of the status. */
export function heardStatus(
  status: RpcStatus,
  codeOf: (name: RpcCodeName, message: string) => ErrorCode | undefined,
): ProtocolError {
  const given = detailsIn(status);
  const details = readErrorDetails(given);
  const name = NAME_OF_CODE.get(status.code) ?? "UNKNOWN";
  const code = details.code ?? codeOf(name, status.message) ?? "INTERNAL_ERROR";
  const message = status.message === "" ? `The agent refused with gRPC status ${name} only.` : status.message;
  return heardError(code, message, details, given.length === 0 ? undefined : given);
}
