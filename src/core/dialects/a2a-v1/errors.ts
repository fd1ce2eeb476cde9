/** Every error code as an A2A 1.0.1 error of each binding, and back. */

import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { codeOfReason, decodePeerError, errorDetails, errorRow, toErrorObject } from "../shared/errors.ts";
import { CODE_OF_GRPC_STATUS } from "../shared/grpc/status.ts";

/** Decodes a JSON-RPC error object, a `google.rpc.Status` or a problem document (`status` 0: no HTTP status). */
export function decodeError(given: JsonObject, status: number): ProtocolError {
  return decodePeerError(
    given,
    status,
    ({ code, status: name, type }) =>
      codeOfJsonRpc(code) ?? (typeof name === "string" ? CODE_OF_GRPC_STATUS[name] : undefined) ?? codeOfProblem(type),
  );
}

/** Early revisions of the 1.0 text showed problem documents, with the error's name at the end of a URL. */
function codeOfProblem(type: unknown): ErrorCode | undefined {
  if (typeof type !== "string") return undefined;
  const name = type.slice(type.lastIndexOf("/") + 1);
  return codeOfReason(name.replaceAll("-", "_").toUpperCase());
}

/** The first nine are A2A's, the next five JSON-RPC's, the rest ours within the range that A2A leaves free. */
export const ERRORS = {
  TASK_NOT_FOUND: errorRow(-32001, 404, "NOT_FOUND"),
  TASK_NOT_CANCELABLE: errorRow(-32002, 400, "FAILED_PRECONDITION"),
  PUSH_NOTIFICATION_NOT_SUPPORTED: errorRow(-32003, 400, "FAILED_PRECONDITION"),
  UNSUPPORTED_OPERATION: errorRow(-32004, 400, "FAILED_PRECONDITION"),
  CONTENT_TYPE_NOT_SUPPORTED: errorRow(-32005, 400, "INVALID_ARGUMENT"),
  INVALID_AGENT_RESPONSE: errorRow(-32006, 500, "INTERNAL"),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: errorRow(-32007, 400, "FAILED_PRECONDITION"),
  EXTENSION_SUPPORT_REQUIRED: errorRow(-32008, 400, "FAILED_PRECONDITION"),
  VERSION_NOT_SUPPORTED: errorRow(-32009, 400, "FAILED_PRECONDITION"),
  PARSE_ERROR: errorRow(-32700, 400, "INVALID_ARGUMENT"),
  INVALID_REQUEST: errorRow(-32600, 400, "INVALID_ARGUMENT"),
  METHOD_NOT_FOUND: errorRow(-32601, 404, "UNIMPLEMENTED"),
  INVALID_PARAMS: errorRow(-32602, 400, "INVALID_ARGUMENT"),
  INTERNAL_ERROR: errorRow(-32603, 500, "INTERNAL"),
  UNAUTHENTICATED: errorRow(-32050, 401, "UNAUTHENTICATED"),
  PERMISSION_DENIED: errorRow(-32051, 403, "PERMISSION_DENIED"),
  RESOURCE_EXHAUSTED: errorRow(-32052, 429, "RESOURCE_EXHAUSTED"),
  UNAVAILABLE: errorRow(-32053, 503, "UNAVAILABLE"),
  IDEMPOTENCY_CONFLICT: errorRow(-32054, 409, "ALREADY_EXISTS"),
  LOSS_REFUSED: errorRow(-32055, 422, "FAILED_PRECONDITION"),
} as const satisfies Record<ErrorCode, unknown>;

export function toJsonRpcError(error: ProtocolError): string {
  return toErrorObject(ERRORS[error.code].jsonRpc, error);
}

/** The body of an HTTP error as JSON: `google.rpc.Status` in its HTTP form. */
export function toHttpError(error: ProtocolError, status: number = ERRORS[error.code].http): string {
  const { grpcStatus } = ERRORS[error.code];
  return JSON.stringify({
    error: { code: status, status: grpcStatus, message: error.message, details: errorDetails(error) },
  });
}

const CODE_OF_JSON_RPC: ReadonlyMap<number, ErrorCode> = new Map(
  ERROR_CODES.map((code) => [ERRORS[code].jsonRpc, code]),
);

export function codeOfJsonRpc(code: unknown): ErrorCode | undefined {
  return typeof code === "number" ? CODE_OF_JSON_RPC.get(code) : undefined;
}
