/** Every error code as an HTTP status and a body. The dialect never said how its errors look, so this form is ours. */
import { ERROR_CODES, type ErrorCode, type ProtocolError } from "../../model/errors.ts";

export const STATUSES = {
  TASK_NOT_FOUND: 404,
  TASK_NOT_CANCELABLE: 409,
  PUSH_NOTIFICATION_NOT_SUPPORTED: 501,
  // Mostly a message to a task that has ended.
  UNSUPPORTED_OPERATION: 409,
  CONTENT_TYPE_NOT_SUPPORTED: 415,
  INVALID_AGENT_RESPONSE: 502,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: 404,
  EXTENSION_SUPPORT_REQUIRED: 400,
  VERSION_NOT_SUPPORTED: 400,
  PARSE_ERROR: 400,
  INVALID_REQUEST: 400,
  METHOD_NOT_FOUND: 404,
  INVALID_PARAMS: 400,
  INTERNAL_ERROR: 500,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  IDEMPOTENCY_CONFLICT: 409,
  LOSS_REFUSED: 422,
} as const satisfies Record<ErrorCode, number>;

/** `{"error": {"code": "task-not-found", "message", "taskId"?, "violations"?, "retryAfter"?}}` */
export function toErrorBody({ code, message, metadata, retryAfter, violations }: ProtocolError): string {
  return JSON.stringify({
    error: { code: toWord(code), message, taskId: metadata?.taskId, violations, retryAfter },
  });
}

function toWord(code: ErrorCode): string {
  return code.toLowerCase().replaceAll("_", "-");
}

const CODE_OF_WORD: ReadonlyMap<unknown, ErrorCode> = new Map(ERROR_CODES.map((code) => [toWord(code), code]));

export function codeOfWord(word: unknown): ErrorCode | undefined {
  return CODE_OF_WORD.get(word);
}
