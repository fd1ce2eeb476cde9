/** Errors in the form of ARD (appendix B). */

import { type ErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import { type FullReply, jsonReply } from "../../../core/wire/exchange.ts";

type ArdError = readonly [status: number, errorCode: string];

const INVALID: ArdError = [400, "INVALID_ARGUMENT"];
const INTERNAL: ArdError = [500, "INTERNAL_ERROR"];

const ERRORS = {
  TASK_NOT_FOUND: [404, "NOT_FOUND"],
  METHOD_NOT_FOUND: [404, "NOT_FOUND"],
  UNAUTHENTICATED: [401, "UNAUTHENTICATED"],
  PERMISSION_DENIED: [403, "PERMISSION_DENIED"],
  RESOURCE_EXHAUSTED: [429, "RATE_LIMIT_EXCEEDED"],
  UNAVAILABLE: [503, "UNAVAILABLE"],
  TASK_NOT_CANCELABLE: INVALID,
  PUSH_NOTIFICATION_NOT_SUPPORTED: INVALID,
  UNSUPPORTED_OPERATION: INVALID,
  CONTENT_TYPE_NOT_SUPPORTED: INVALID,
  EXTENSION_SUPPORT_REQUIRED: INVALID,
  VERSION_NOT_SUPPORTED: INVALID,
  PARSE_ERROR: INVALID,
  INVALID_REQUEST: INVALID,
  INVALID_PARAMS: INVALID,
  IDEMPOTENCY_CONFLICT: INVALID,
  LOSS_REFUSED: INVALID,
  INVALID_AGENT_RESPONSE: INTERNAL,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: INTERNAL,
  INTERNAL_ERROR: INTERNAL,
} as const satisfies Record<ErrorCode, ArdError>;

/** `status`: where it differs from that of the error. */
export function ardErrorReply(error: ProtocolError, status?: number): FullReply {
  const [usual, errorCode] = ERRORS[error.code];
  const { challenge, message, retryAfter } = error;
  return jsonReply(status ?? usual, JSON.stringify({ errorCode, message }), {
    ...(challenge !== undefined && { "www-authenticate": challenge }),
    ...(retryAfter !== undefined && { "retry-after": `${Math.ceil(retryAfter)}` }),
  });
}

export function ardMethodNotAllowed(allow: string): FullReply {
  const reply = ardErrorReply(new ProtocolError("INVALID_REQUEST", `This path takes ${allow}.`), 405);
  return { ...reply, headers: { ...reply.headers, allow } };
}
