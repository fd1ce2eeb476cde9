/** Every error code as an A2A 1.0.1 error of each binding, and back. */

import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";
import type { RpcCodeName } from "../../wire/rpc.ts";
import {
  codeOfHttpStatus,
  codeOfReason,
  createPeerError,
  errorDetails,
  peerErrorMessage,
  readErrorDetails,
} from "../shared/errors.ts";

/** Decodes a peer's error to a ProtocolError, in any of the forms in use. */

/** For errors without a reason. Several errors share a status; the most common one is used. */
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
 * Decodes a JSON-RPC error object, a `google.rpc.Status` or a problem document. The reason decides, then the JSON-RPC
 * code, then the gRPC status name; the HTTP status only as a last resort (`status` 0: there is none).
 */
export function decodeError(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code =
    details.code ??
    codeOfJsonRpc(given.code) ??
    (typeof given.status === "string" ? CODE_OF_GRPC_STATUS[given.status] : undefined) ??
    codeOfProblem(given.type) ??
    (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return createPeerError(code, peerErrorMessage(given, status), details, data);
}

/** Early revisions of the 1.0 text showed problem documents, with the error's name at the end of a URL. */
function codeOfProblem(type: unknown): ErrorCode | undefined {
  if (typeof type !== "string") return undefined;
  const name = type.slice(type.lastIndexOf("/") + 1);
  return codeOfReason(name.replaceAll("-", "_").toUpperCase());
}

interface ErrorRow {
  readonly jsonRpc: number;
  readonly http: number;
  readonly grpcStatus: RpcCodeName;
}

/** The first nine are A2A's, the next five JSON-RPC's, the rest ours within the range that A2A leaves free. */
export const ERRORS = {
  TASK_NOT_FOUND: row(-32001, 404, "NOT_FOUND"),
  TASK_NOT_CANCELABLE: row(-32002, 400, "FAILED_PRECONDITION"),
  PUSH_NOTIFICATION_NOT_SUPPORTED: row(-32003, 400, "FAILED_PRECONDITION"),
  UNSUPPORTED_OPERATION: row(-32004, 400, "FAILED_PRECONDITION"),
  CONTENT_TYPE_NOT_SUPPORTED: row(-32005, 400, "INVALID_ARGUMENT"),
  INVALID_AGENT_RESPONSE: row(-32006, 500, "INTERNAL"),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: row(-32007, 400, "FAILED_PRECONDITION"),
  EXTENSION_SUPPORT_REQUIRED: row(-32008, 400, "FAILED_PRECONDITION"),
  VERSION_NOT_SUPPORTED: row(-32009, 400, "FAILED_PRECONDITION"),
  PARSE_ERROR: row(-32700, 400, "INVALID_ARGUMENT"),
  INVALID_REQUEST: row(-32600, 400, "INVALID_ARGUMENT"),
  METHOD_NOT_FOUND: row(-32601, 404, "UNIMPLEMENTED"),
  INVALID_PARAMS: row(-32602, 400, "INVALID_ARGUMENT"),
  INTERNAL_ERROR: row(-32603, 500, "INTERNAL"),
  UNAUTHENTICATED: row(-32050, 401, "UNAUTHENTICATED"),
  PERMISSION_DENIED: row(-32051, 403, "PERMISSION_DENIED"),
  RESOURCE_EXHAUSTED: row(-32052, 429, "RESOURCE_EXHAUSTED"),
  UNAVAILABLE: row(-32053, 503, "UNAVAILABLE"),
  IDEMPOTENCY_CONFLICT: row(-32054, 409, "ALREADY_EXISTS"),
  LOSS_REFUSED: row(-32055, 422, "FAILED_PRECONDITION"),
} as const satisfies Record<ErrorCode, ErrorRow>;

function row(jsonRpc: number, http: number, grpcStatus: RpcCodeName): ErrorRow {
  return { jsonRpc, http, grpcStatus };
}

/** A JSON-RPC error object as JSON. */
export function toJsonRpcError(error: ProtocolError): string {
  return JSON.stringify({ code: ERRORS[error.code].jsonRpc, message: error.message, data: errorDetails(error) });
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
