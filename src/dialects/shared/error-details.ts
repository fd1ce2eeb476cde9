/**
 * Details of an error in the form of `google.rpc`, the same on every binding that has room for them. The reason is the
 * error's code, so that a peer that reads them knows exactly which error is meant.
 */
import { ERROR_CODES, type ErrorCode, type FieldViolation, type ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { isRecord } from "./proto-json-reading.ts";

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
      ...(error.metadata === undefined ? undefined : { metadata: { ...error.metadata } }),
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

/** What can be learnt from a peer's `data` or `details`, whatever they are. */
export interface ErrorDetails {
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
