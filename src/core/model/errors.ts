import type { JsonObject } from "./json.ts";

/**
 * Every error that may be sent to a peer. Closed on purpose: each dialect maps every code
 * both ways, and a forgotten one does not compile.
 */
export const ERROR_CODES = [
  "TASK_NOT_FOUND",
  "TASK_NOT_CANCELABLE",
  "PUSH_NOTIFICATION_NOT_SUPPORTED",
  "UNSUPPORTED_OPERATION",
  "CONTENT_TYPE_NOT_SUPPORTED",
  "INVALID_AGENT_RESPONSE",
  "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
  "EXTENSION_SUPPORT_REQUIRED",
  "VERSION_NOT_SUPPORTED",
  "PARSE_ERROR",
  "INVALID_REQUEST",
  "METHOD_NOT_FOUND",
  "INVALID_PARAMS",
  "INTERNAL_ERROR",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "UNAVAILABLE",
  "IDEMPOTENCY_CONFLICT",
  "LOSS_REFUSED",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export interface FieldViolation {
  /** Path of the member in the caller's own spelling, e.g. `message.parts[0]`. */
  readonly field: string;
  readonly description: string;
}

interface ProtocolErrorOptions {
  /** Facts for the peer, e.g. `{ taskId }`. Never anything secret: this crosses the wire. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly violations?: readonly FieldViolation[] | undefined;
  /** Seconds after which a repeat may succeed. */
  readonly retryAfter?: number | undefined;
  /** How to authenticate: the value of `WWW-Authenticate`. */
  readonly challenge?: string | undefined;
  /** What the peer sent, when this error was received rather than raised here. */
  readonly data?: JsonObject | readonly JsonObject[] | undefined;
  readonly cause?: unknown;
}

const PROTOCOL_ERROR_BRAND = Symbol.for("dragoman.ProtocolError");

/** The one error that crosses the wire, in either direction. */
export class ProtocolError extends Error {
  readonly code: ErrorCode;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly violations: readonly FieldViolation[] | undefined;
  readonly retryAfter: number | undefined;
  readonly challenge: string | undefined;
  readonly data: JsonObject | readonly JsonObject[] | undefined;

  constructor(code: ErrorCode, message: string, options: ProtocolErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ProtocolError";
    this.code = code;
    this.metadata = options.metadata;
    this.violations = options.violations;
    this.retryAfter = options.retryAfter;
    this.challenge = options.challenge;
    this.data = options.data;
    Object.defineProperty(this, PROTOCOL_ERROR_BRAND, { value: true });
  }

  /** True also for an instance of another copy of this package, where `instanceof` would fail. */
  static is(error: unknown): error is ProtocolError {
    return typeof error === "object" && error !== null && PROTOCOL_ERROR_BRAND in error;
  }
}

/** Whether something that the server depends on is away and may be back in a while, such as its database. */
export function isTemporary(error: unknown): boolean {
  return error instanceof Error && "temporary" in error && error.temporary === true;
}

/** The same refusal with how to authenticate. */
export function withChallenge(error: ProtocolError, challenge: string | undefined): ProtocolError {
  if (challenge === undefined || error.challenge !== undefined) return error;
  return new ProtocolError(error.code, error.message, { ...error, challenge, cause: error.cause });
}

export function taskNotFound(taskId: string): ProtocolError {
  return new ProtocolError("TASK_NOT_FOUND", "Task not found.", { metadata: { taskId } });
}

/** For a task that the caller may see; the specification has no code of its own for it. */
export function pushConfigNotFound(taskId: string, configId?: string): ProtocolError {
  return new ProtocolError("TASK_NOT_FOUND", "Push notification config of the task not found.", {
    metadata: configId === undefined ? { taskId } : { taskId, configId },
  });
}

/** For an id that a caller chose for a new task. */
export function taskIdTaken(taskId: string): ProtocolError {
  const violation = { field: "id", description: "is the id of another task already" };
  const message = `${violation.field}: ${violation.description}`;
  return new ProtocolError("INVALID_PARAMS", message, { violations: [violation], metadata: { taskId } });
}

export function invalidParams(field: string, description: string): ProtocolError {
  return new ProtocolError("INVALID_PARAMS", `${field}: ${description}`, { violations: [{ field, description }] });
}

/** Whether something failed for this reason of the operating system, such as `ENOENT`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
