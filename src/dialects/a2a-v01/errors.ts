/** Every error code as an A2A 0.1 error, and back. */

import type { ErrorCode, ProtocolError } from "../../model/errors.ts";
import { codeOfHttpStatus, createPeerError, errorDetails, readErrorDetails } from "../shared/errors.ts";

/** Decodes a peer's error to a ProtocolError. */

/** The reason in `data` decides, then the code; the HTTP status only as a last resort (0: there is none). */
export function decodeError(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const { data } = given;
  const details = readErrorDetails(data);
  const code =
    details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return createPeerError(code, messageOf(given), details, data);
}

function messageOf({ detail, message }: Readonly<Record<string, unknown>>): string {
  for (const text of [message, detail]) if (typeof text === "string" && text !== "") return text;
  return "The agent refused without saying why.";
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

/** A JSON-RPC error object as JSON. */
export function toJsonRpcError(error: ProtocolError): string {
  return JSON.stringify({ code: JSON_RPC_CODES[error.code], message: error.message, data: errorDetails(error) });
}

const CODE_OF_JSON_RPC: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  [-32700, "PARSE_ERROR"],
  [-32600, "INVALID_REQUEST"],
  [-32601, "METHOD_NOT_FOUND"],
  [-32602, "INVALID_PARAMS"],
  [-32603, "INTERNAL_ERROR"],
  [-32001, "TASK_NOT_FOUND"],
  [-32002, "TASK_NOT_CANCELABLE"],
  [-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
  [-32004, "UNSUPPORTED_OPERATION"],
  [-32005, "CONTENT_TYPE_NOT_SUPPORTED"],
  // No streaming, and a message for a task that does not accept any: both are unsupported operations.
  [-32006, "UNSUPPORTED_OPERATION"],
  [-32009, "UNSUPPORTED_OPERATION"],
  [-32007, "UNAUTHENTICATED"],
  [-32008, "PERMISSION_DENIED"],
  [-32010, "RESOURCE_EXHAUSTED"],
  [-32011, "UNAVAILABLE"],
]);

function codeOfJsonRpc(code: unknown): ErrorCode | undefined {
  return CODE_OF_JSON_RPC.get(code);
}
