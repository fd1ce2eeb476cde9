/** Every error code in the words of A2A 1.0.1, for each binding, and back. */
import { ERROR_CODES, type ErrorCode, type FieldViolation, ProtocolError } from "../../model/errors.ts";
import { isRecord } from "./proto-json-reading.ts";

interface ErrorRow {
  readonly jsonRpc: number;
  readonly http: number;
  readonly grpcStatus: string;
  readonly reason: string;
}

/** The first nine are the protocol's, the next five JSON-RPC's, the rest ours within the range A2A leaves to it. */
export const ERRORS = {
  TASK_NOT_FOUND: row(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
  TASK_NOT_CANCELABLE: row(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
  PUSH_NOTIFICATION_NOT_SUPPORTED: row(-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
  UNSUPPORTED_OPERATION: row(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
  CONTENT_TYPE_NOT_SUPPORTED: row(-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
  INVALID_AGENT_RESPONSE: row(-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: row(-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
  EXTENSION_SUPPORT_REQUIRED: row(-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
  VERSION_NOT_SUPPORTED: row(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
  PARSE_ERROR: row(-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
  INVALID_REQUEST: row(-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
  METHOD_NOT_FOUND: row(-32601, 404, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
  INVALID_PARAMS: row(-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
  INTERNAL_ERROR: row(-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
  UNAUTHENTICATED: row(-32050, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"),
  PERMISSION_DENIED: row(-32051, 403, "PERMISSION_DENIED", "PERMISSION_DENIED"),
  RESOURCE_EXHAUSTED: row(-32052, 429, "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"),
  UNAVAILABLE: row(-32053, 503, "UNAVAILABLE", "UNAVAILABLE"),
  IDEMPOTENCY_CONFLICT: row(-32054, 409, "ALREADY_EXISTS", "IDEMPOTENCY_CONFLICT"),
  LOSS_REFUSED: row(-32055, 422, "FAILED_PRECONDITION", "LOSS_REFUSED"),
} as const satisfies Record<ErrorCode, ErrorRow>;

function row(jsonRpc: number, http: number, grpcStatus: string, reason: string): ErrorRow {
  return { jsonRpc, http, grpcStatus, reason };
}

const ERROR_DOMAIN = "a2a-protocol.org";
const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest";
const RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo";

/** What goes to the peer. Anything that is not a ProtocolError, and the text of an internal one, stays here. */
export function presentable(error: unknown): ProtocolError {
  if (ProtocolError.is(error) && error.code !== "INTERNAL_ERROR") return error;
  return new ProtocolError("INTERNAL_ERROR", "The agent could not answer because of an internal error.", {
    cause: error,
  });
}

/** A JSON-RPC error object as JSON. */
export function toJsonRpcError(error: ProtocolError): string {
  return JSON.stringify({ code: ERRORS[error.code].jsonRpc, message: error.message, data: detailsOf(error) });
}

/** The body of an HTTP error as JSON: `google.rpc.Status` in its HTTP form. */
export function toHttpError(error: ProtocolError, status: number = ERRORS[error.code].http): string {
  const { grpcStatus } = ERRORS[error.code];
  return JSON.stringify({
    error: { code: status, status: grpcStatus, message: error.message, details: detailsOf(error) },
  });
}

/** Headers an error brings along on any HTTP binding. */
export function errorHeaders(error: ProtocolError): Readonly<Record<string, string>> | undefined {
  return error.retryAfter === undefined ? undefined : { "retry-after": String(Math.ceil(error.retryAfter)) };
}

function detailsOf(error: ProtocolError): object[] {
  const details: object[] = [
    {
      "@type": ERROR_INFO,
      reason: ERRORS[error.code].reason,
      domain: ERROR_DOMAIN,
      ...(error.metadata === undefined ? undefined : { metadata: error.metadata }),
    },
  ];
  if (error.violations !== undefined && error.violations.length > 0) {
    details.push({ "@type": BAD_REQUEST, fieldViolations: error.violations });
  }
  if (error.retryAfter !== undefined) details.push({ "@type": RETRY_INFO, retryDelay: `${error.retryAfter}s` });
  return details;
}

const CODE_OF_REASON: ReadonlyMap<string, ErrorCode> = new Map(ERROR_CODES.map((code) => [ERRORS[code].reason, code]));
const CODE_OF_JSON_RPC: ReadonlyMap<number, ErrorCode> = new Map(
  ERROR_CODES.map((code) => [ERRORS[code].jsonRpc, code]),
);

export function codeOfReason(reason: unknown): ErrorCode | undefined {
  return typeof reason === "string" ? CODE_OF_REASON.get(reason) : undefined;
}

export function codeOfJsonRpc(code: unknown): ErrorCode | undefined {
  return typeof code === "number" ? CODE_OF_JSON_RPC.get(code) : undefined;
}

/** What can be learnt from a peer's `data` or `details`, whatever they are. */
interface ErrorDetails {
  readonly code?: ErrorCode;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly FieldViolation[];
  readonly retryAfter?: number;
}

/**
 * A reason identifies an error on every binding; a JSON-RPC code does where there is no reason; an HTTP status never
 * does, since several errors share one and releases of the protocol moved them.
 */
export function readErrorDetails(details: unknown): ErrorDetails {
  let found: { -readonly [Member in keyof ErrorDetails]: ErrorDetails[Member] } = {};
  for (const detail of Array.isArray(details) ? details : [details]) {
    if (!isRecord(detail)) continue;
    const code = codeOfReason(detail.reason);
    const metadata = stringMembers(detail.metadata);
    if (code !== undefined) found = { ...found, code, ...(metadata && { metadata }) };
    if (Array.isArray(detail.fieldViolations)) found.violations = readViolations(detail.fieldViolations);
    const seconds = typeof detail.retryDelay === "string" ? Number.parseFloat(detail.retryDelay) : Number.NaN;
    if (seconds >= 0) found.retryAfter = seconds;
  }
  return found;
}

function readViolations(given: readonly unknown[]): FieldViolation[] {
  return given
    .filter(isRecord)
    .map(({ field, description }) => ({ field: textOr(field, ""), description: textOr(description, "") }));
}

function stringMembers(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isRecord(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
