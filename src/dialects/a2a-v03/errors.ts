/** Every error code as an A2A 0.3 error of each binding, and back. */

import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";
import type { RpcCodeName } from "../../wire/rpc.ts";
import {
  codeOfHttpStatus,
  createPeerError,
  errorDetails,
  peerErrorMessage,
  readErrorDetails,
} from "../shared/errors.ts";

/** Decodes a peer's error to a ProtocolError, in any of the forms in use. */

/**
 * Decodes an error object, or any object in its place. The reason decides, then the JSON-RPC code, then the binding's
 * mapping of the HTTP status (`status` 0: there is none).
 */
export function decodeError(
  given: Readonly<Record<string, unknown>>,
  status: number,
  codeOfStatus: (status: number) => ErrorCode = codeOfHttpStatus,
): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code = details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfStatus(status));
  return createPeerError(code, peerErrorMessage(given, status), details, data);
}

interface ErrorRow {
  readonly jsonRpc: number;
  readonly http: number;
  readonly grpcStatus: RpcCodeName;
}

/**
 * The first seven are A2A's, the next two do not exist in 0.3 and use its nearest code, then come JSON-RPC's and our
 * own. 0.3 does not define HTTP statuses; these are the most specific of those in use.
 */
export const ERRORS = {
  TASK_NOT_FOUND: row(-32001, 404, "NOT_FOUND"),
  TASK_NOT_CANCELABLE: row(-32002, 409, "FAILED_PRECONDITION"),
  PUSH_NOTIFICATION_NOT_SUPPORTED: row(-32003, 501, "UNIMPLEMENTED"),
  UNSUPPORTED_OPERATION: row(-32004, 501, "UNIMPLEMENTED"),
  CONTENT_TYPE_NOT_SUPPORTED: row(-32005, 415, "INVALID_ARGUMENT"),
  INVALID_AGENT_RESPONSE: row(-32006, 502, "INTERNAL"),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: row(-32007, 404, "FAILED_PRECONDITION"),
  EXTENSION_SUPPORT_REQUIRED: row(-32600, 400, "FAILED_PRECONDITION"),
  VERSION_NOT_SUPPORTED: row(-32600, 400, "FAILED_PRECONDITION"),
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

function row(jsonRpc: number, http: number, rpc: RpcCodeName): ErrorRow {
  return { jsonRpc, http, grpcStatus: rpc };
}

/** `{code, message, data}` as JSON: the error object of JSON-RPC, and the body of an error over HTTP. */
export function toErrorObject(error: ProtocolError): string {
  return JSON.stringify({ code: ERRORS[error.code].jsonRpc, message: error.message, data: errorDetails(error) });
}

const CODE_OF_JSON_RPC: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  ...ERROR_CODES.map((code): [number, ErrorCode] => [ERRORS[code].jsonRpc, code]),
  // Only 1.0 has the next two, but servers that support both versions may send them to any caller.
  [-32008, "EXTENSION_SUPPORT_REQUIRED"],
  [-32009, "VERSION_NOT_SUPPORTED"],
]);

export function codeOfJsonRpc(code: unknown): ErrorCode | undefined {
  return typeof code === "number" ? CODE_OF_JSON_RPC.get(code) : undefined;
}
