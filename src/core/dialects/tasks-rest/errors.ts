/** Every error code as an HTTP status and a body. The dialect does not define errors, so this form is ours. */

import { ERROR_CODES, type ErrorCode, type FieldViolation, ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { OperationKind } from "../../model/operation.ts";
import { codeOfHttpStatus, httpStatusError } from "../shared/errors.ts";

/** Default responses of web frameworks for unknown paths. */
const NO_SUCH_ROUTE = /^(not found|method not allowed|no (such )?route|cannot (get|post)\b)/i;

/** Decodes a peer's error: in our form, in that of the web frameworks that such agents are built with, or bare. */
export function decodeError(kind: OperationKind, value: unknown, status: number): ProtocolError {
  const error = isObject(value) ? (isObject(value.error) ? value.error : value) : undefined;
  const text = error === undefined ? undefined : messageIn(error);
  const known = codeByName(error?.code);
  if (error !== undefined && known !== undefined) return decodeOwnForm(known, text, error);
  const code = codeOfStatus(kind, status, text);
  return text === undefined
    ? httpStatusError(status, code)
    : new ProtocolError(code, text, violationsIn(error?.detail));
}

/** An error within a stream has no status. */
export function decodeStreamError(value: unknown, text: string): ProtocolError {
  const error = isObject(value) ? (isObject(value.error) ? value.error : value) : {};
  const message = messageIn(error) ?? text;
  return decodeOwnForm(codeByName(error.code) ?? "INTERNAL_ERROR", message, error);
}

function decodeOwnForm(
  code: ErrorCode,
  text: string | undefined,
  error: Readonly<Record<string, unknown>>,
): ProtocolError {
  const { retryAfter, taskId, violations } = error;
  return new ProtocolError(code, text ?? "The agent refused without giving a reason.", {
    metadata: typeof taskId === "string" ? { taskId } : undefined,
    violations: Array.isArray(violations) ? violations.filter(isViolation) : undefined,
    retryAfter: typeof retryAfter === "number" && retryAfter >= 0 ? retryAfter : undefined,
  });
}

function isViolation(value: unknown): value is FieldViolation {
  return isObject(value) && typeof value.field === "string" && typeof value.description === "string";
}

/**
 * If the path does not exist, the peer does not support this dialect, or not this operation. Cancelling is our
 * addition, which other agents may lack. A 404 with a reason refers to the task.
 */
function codeOfStatus(kind: OperationKind, status: number, text: string | undefined): ErrorCode {
  if (status !== 404 && status !== 405 && status !== 501) return codeOfHttpStatus(status);
  const isRoute = status !== 404 || text === undefined || NO_SUCH_ROUTE.test(text);
  if (kind === "cancel") return isRoute ? "UNSUPPORTED_OPERATION" : "TASK_NOT_FOUND";
  return isRoute || kind === "send" ? "METHOD_NOT_FOUND" : "TASK_NOT_FOUND";
}

function messageIn({ detail, error, message }: Readonly<Record<string, unknown>>): string | undefined {
  for (const text of [message, detail, error]) if (typeof text === "string" && text !== "") return text;
  const [first] = violationsIn(detail).violations ?? [];
  return first === undefined ? undefined : `${first.field} ${first.description}`;
}

/** FastAPI lists validation errors as `[{loc, msg}]`. */
function violationsIn(detail: unknown): { readonly violations?: readonly FieldViolation[] } {
  if (!Array.isArray(detail)) return {};
  const violations = detail
    .filter(isObject)
    .map(({ loc, msg }) => ({ field: Array.isArray(loc) ? loc.join(".") : "", description: String(msg ?? "") }));
  return violations.length === 0 ? {} : { violations };
}

export const HTTP_STATUSES = {
  TASK_NOT_FOUND: 404,
  TASK_NOT_CANCELABLE: 409,
  PUSH_NOTIFICATION_NOT_SUPPORTED: 501,
  // Usually a message to a task that has ended.
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
    error: { code: toErrorName(code), message, taskId: metadata?.taskId, violations, retryAfter },
  });
}

function toErrorName(code: ErrorCode): string {
  return code.toLowerCase().replaceAll("_", "-");
}

const CODE_BY_NAME: ReadonlyMap<unknown, ErrorCode> = new Map(ERROR_CODES.map((code) => [toErrorName(code), code]));

function codeByName(name: unknown): ErrorCode | undefined {
  return CODE_BY_NAME.get(name);
}
