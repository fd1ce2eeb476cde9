/** Every error code as an A2A 0.1 error, and back. */

import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { decodePeerError, toErrorObject } from "../shared/errors.ts";

export function decodeError(given: JsonObject, status: number): ProtocolError {
  return decodePeerError(given, status, ({ code }) => CODE_OF_JSON_RPC.get(code));
}

/**
 * -32001 to -32005 are in the schema of 0.1, -32007 and up in its prose; later releases gave some of these numbers
 * other meanings, so they apply to this dialect only. Errors that 0.1 cannot express use its nearest code; `data`
 * carries the exact one.
 */
const JSON_RPC_CODES = {
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32603,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32004,
  EXTENSION_SUPPORT_REQUIRED: -32004,
  VERSION_NOT_SUPPORTED: -32600,
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  UNAUTHENTICATED: -32007,
  PERMISSION_DENIED: -32008,
  RESOURCE_EXHAUSTED: -32010,
  UNAVAILABLE: -32011,
  IDEMPOTENCY_CONFLICT: -32602,
  LOSS_REFUSED: -32004,
} as const satisfies Record<ErrorCode, number>;

export function toJsonRpcError(error: ProtocolError): string {
  return toErrorObject(JSON_RPC_CODES[error.code], error);
}

/** Of the errors that share a code, the first is the code's own, unless it is listed again. */
const CODE_OF_JSON_RPC: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  ...ERROR_CODES.toReversed().map((code): [number, ErrorCode] => [JSON_RPC_CODES[code], code]),
  [-32600, "INVALID_REQUEST"],
  [-32603, "INTERNAL_ERROR"],
  // No streaming, and a message for a task that does not accept any: both are unsupported operations.
  [-32006, "UNSUPPORTED_OPERATION"],
  [-32009, "UNSUPPORTED_OPERATION"],
]);
