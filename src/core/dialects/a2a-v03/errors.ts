/** Every error code as an A2A 0.3 error of each binding, and back. */

import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { decodePeerError, errorRow, toErrorObject as toNumberedError } from "../shared/errors.ts";

/** `fallback`: the code of an error without one. */
export function decodeError(given: JsonObject, status: number, fallback?: ErrorCode): ProtocolError {
  return decodePeerError(given, status, ({ code }) => codeOfJsonRpc(code) ?? fallback);
}

/**
 * The first seven are A2A's, the next two do not exist in 0.3 and use its nearest code, then come JSON-RPC's and our
 * own. 0.3 does not define HTTP statuses; these are the most specific of those in use.
 */
export const ERRORS = {
  TASK_NOT_FOUND: errorRow(-32001, 404, "NOT_FOUND"),
  TASK_NOT_CANCELABLE: errorRow(-32002, 409, "FAILED_PRECONDITION"),
  PUSH_NOTIFICATION_NOT_SUPPORTED: errorRow(-32003, 501, "UNIMPLEMENTED"),
  UNSUPPORTED_OPERATION: errorRow(-32004, 501, "UNIMPLEMENTED"),
  CONTENT_TYPE_NOT_SUPPORTED: errorRow(-32005, 415, "INVALID_ARGUMENT"),
  INVALID_AGENT_RESPONSE: errorRow(-32006, 502, "INTERNAL"),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: errorRow(-32007, 404, "FAILED_PRECONDITION"),
  EXTENSION_SUPPORT_REQUIRED: errorRow(-32600, 400, "FAILED_PRECONDITION"),
  VERSION_NOT_SUPPORTED: errorRow(-32600, 400, "FAILED_PRECONDITION"),
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

/** The error object of JSON-RPC, and the body of an error over HTTP. */
export function toErrorObject(error: ProtocolError): string {
  return toNumberedError(ERRORS[error.code].jsonRpc, error);
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
