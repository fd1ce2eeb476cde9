/** A peer's refusal as a ProtocolError, in whichever of the forms in use it comes. */
import type { ErrorCode, ProtocolError } from "../../model/errors.ts";
import { codeOfReason, readErrorDetails } from "../shared/error-details.ts";
import { heardError, textOfRefusal } from "../shared/heard-error.ts";
import { codeOfHttpStatus } from "../shared/http-statuses.ts";
import { codeOfJsonRpc } from "./errors.ts";

/** For refusals of the protocol that name no reason; several errors share a status, the commonest is taken. */
export const CODE_OF_GRPC_STATUS: Readonly<Record<string, ErrorCode>> = {
  NOT_FOUND: "TASK_NOT_FOUND",
  INVALID_ARGUMENT: "INVALID_PARAMS",
  FAILED_PRECONDITION: "UNSUPPORTED_OPERATION",
  UNIMPLEMENTED: "METHOD_NOT_FOUND",
  UNAUTHENTICATED: "UNAUTHENTICATED",
  PERMISSION_DENIED: "PERMISSION_DENIED",
  RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
  UNAVAILABLE: "UNAVAILABLE",
  DEADLINE_EXCEEDED: "UNAVAILABLE",
  INTERNAL: "INTERNAL_ERROR",
};

/**
 * Reads a JSON-RPC error object, a `google.rpc.Status` or a problem document. The reason decides, then a JSON-RPC
 * code, then the name of a gRPC status; the HTTP status only when there is nothing else (`status` 0: there is none).
 */
export function readRefusal(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code =
    details.code ??
    codeOfJsonRpc(given.code) ??
    (typeof given.status === "string" ? CODE_OF_GRPC_STATUS[given.status] : undefined) ??
    codeOfProblem(given.type) ??
    (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return heardError(code, textOfRefusal(given, status), details, data);
}

/** Early 1.0 text showed problem documents, with the error's name at the end of a URL. */
function codeOfProblem(type: unknown): ErrorCode | undefined {
  if (typeof type !== "string") return undefined;
  const name = type.slice(type.lastIndexOf("/") + 1);
  return codeOfReason(name.replaceAll("-", "_").toUpperCase());
}
