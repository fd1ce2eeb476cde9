/**
 * Error details in the form of `google.rpc`, the same on every binding that can carry them. The reason is the error's
 * code, so that a peer that decodes them can identify the exact error.
 */

import { ERROR_CODES, type ErrorCode, type FieldViolation, isTemporary, ProtocolError } from "../../model/errors.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { statusText } from "../../model/status-texts.ts";
import type { RpcCodeName } from "../../wire/rpc.ts";

/** Headers of an error on any HTTP binding, and its metadata over gRPC. */
export function errorHeaders({ retryAfter, challenge }: ProtocolError): Readonly<Record<string, string>> | undefined {
  if (retryAfter === undefined && challenge === undefined) return undefined;
  return {
    ...(retryAfter !== undefined && { "retry-after": String(Math.ceil(retryAfter)) }),
    ...(challenge !== undefined && { "www-authenticate": challenge }),
  };
}

/** The error that is sent to the peer. Other errors, and the message of an internal one, are not disclosed. */
export function toPublicError(error: unknown): ProtocolError {
  if (ProtocolError.is(error) && error.code !== "INTERNAL_ERROR") return error;
  if (isTemporary(error)) {
    return new ProtocolError("UNAVAILABLE", statusText("temporarilyUnavailable"), { cause: error, retryAfter: 1 });
  }
  return new ProtocolError("INTERNAL_ERROR", statusText("internalError"), {
    cause: error,
  });
}

/** How the bindings of a version encode one error. */
interface ErrorRow {
  readonly jsonRpc: number;
  readonly http: number;
  readonly grpcStatus: RpcCodeName;
}

export function errorRow(jsonRpc: number, http: number, grpcStatus: RpcCodeName): ErrorRow {
  return { jsonRpc, http, grpcStatus };
}

/** A JSON-RPC error object as JSON. */
export function toErrorObject(code: number, error: ProtocolError): string {
  return JSON.stringify({ code, message: error.message, data: errorDetails(error) });
}

/**
 * Decodes the error object of a peer, or any object in its place. The reason decides, then `codeOf`; the HTTP status
 * only as a last resort (0: there is none).
 */
export function decodePeerError(
  given: JsonObject,
  status: number,
  codeOf: (given: JsonObject) => ErrorCode | undefined,
): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code = details.code ?? codeOf(given) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return createPeerError(code, peerErrorMessage(given, status), details, data);
}

/** `data`: any value that the peer sent with its message. */
export function createPeerError(code: ErrorCode, message: string, details: ErrorDetails, data: unknown): ProtocolError {
  const { metadata, violations, retryAfter } = details;
  return new ProtocolError(code, message, {
    metadata,
    violations,
    retryAfter,
    data: isErrorData(data) ? data : undefined,
  });
}

/** The human-readable message of an error object, under any of the names in use (`status` 0: no HTTP status). */
export function peerErrorMessage(
  { detail, message, title }: Readonly<Record<string, unknown>>,
  status: number,
): string {
  for (const text of [message, detail, title]) if (typeof text === "string" && text !== "") return text;
  return status === 0
    ? "The agent refused without giving a reason."
    : `The agent refused without giving a reason (HTTP status ${status}).`;
}

/** The value was parsed from JSON, so only objects have to be distinguished. */
function isErrorData(value: unknown): value is JsonObject | readonly JsonObject[] {
  return isObject(value) || (Array.isArray(value) && value.every(isObject));
}

/** Meaning of an HTTP status without a decodable body: the response of a proxy, a router, a login page. */
const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "METHOD_NOT_FOUND",
  405: "METHOD_NOT_FOUND",
  408: "UNAVAILABLE",
  415: "CONTENT_TYPE_NOT_SUPPORTED",
  422: "INVALID_PARAMS",
  429: "RESOURCE_EXHAUSTED",
  501: "METHOD_NOT_FOUND",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

export function codeOfHttpStatus(status: number): ErrorCode {
  const known = CODE_OF_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 500) return "INTERNAL_ERROR";
  return status >= 400 ? "INVALID_REQUEST" : "INVALID_AGENT_RESPONSE";
}

/** An error for an HTTP status without a decodable body. */
export function httpStatusError(status: number, code: ErrorCode = codeOfHttpStatus(status)): ProtocolError {
  return new ProtocolError(code, `The agent's server answered with HTTP status ${status} only.`, {
    metadata: { httpStatus: String(status) },
  });
}

const ERROR_DOMAIN = "a2a-protocol.org";
export const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
export const BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest";
export const RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo";

export function errorDetails(error: ProtocolError): JsonObject[] {
  const details: JsonObject[] = [
    {
      "@type": ERROR_INFO,
      reason: error.code,
      domain: ERROR_DOMAIN,
      metadata: error.metadata === undefined ? undefined : { ...error.metadata },
    },
  ];
  if (error.violations !== undefined && error.violations.length > 0) {
    details.push({
      "@type": BAD_REQUEST,
      fieldViolations: error.violations.map(({ field, description }) => ({ field, description })),
    });
  }
  if (error.retryAfter !== undefined) details.push({ "@type": RETRY_INFO, retryDelay: `${error.retryAfter}s` });
  return details;
}

const CODES: ReadonlySet<string> = new Set(ERROR_CODES);

export function codeOfReason(reason: unknown): ErrorCode | undefined {
  return typeof reason === "string" && CODES.has(reason) ? (reason as ErrorCode) : undefined;
}

/** Decodes a peer's `data` or `details`, which may be any value. */
interface ErrorDetails {
  readonly code?: ErrorCode;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly FieldViolation[];
  readonly retryAfter?: number;
}

/**
 * A reason identifies an error on every binding; without a reason, a JSON-RPC code does; an HTTP status never does,
 * since several errors share one and releases of the protocol changed them.
 */
export function readErrorDetails(details: unknown): ErrorDetails {
  let found: { -readonly [Member in keyof ErrorDetails]: ErrorDetails[Member] } = {};
  for (const detail of Array.isArray(details) ? details : [details]) {
    if (!isObject(detail)) continue;
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
    .filter(isObject)
    .map(({ field, description }) => ({ field: textOr(field, ""), description: textOr(description, "") }));
}

function stringMembers(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isObject(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
