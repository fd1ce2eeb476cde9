/** A peer's refusal as a ProtocolError, in whichever of the forms in use it comes. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { readErrorDetails } from "../shared/error-details.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { codeOfJsonRpc } from "./errors.ts";

/** For answers that are not the protocol's at all: a proxy, a router, a login page. */
const CODE_OF_HTTP_STATUS: Readonly<Record<number, ErrorCode>> = {
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

function codeOfHttpStatus(status: number): ErrorCode {
  const known = CODE_OF_HTTP_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 500) return "INTERNAL_ERROR";
  return status >= 400 ? "INVALID_REQUEST" : "INVALID_AGENT_RESPONSE";
}

/** An HTTP status without anything readable beside it. */
export function bareStatus(status: number): ProtocolError {
  return new ProtocolError(codeOfHttpStatus(status), `The agent's server answered with HTTP status ${status} only.`, {
    metadata: { httpStatus: String(status) },
  });
}

/**
 * Reads an error object, or any object in the place of one. A reason decides, then a JSON-RPC code, then what the
 * binding makes of the HTTP status (`status` 0: there is none).
 */
export function readRefusal(
  given: Readonly<Record<string, unknown>>,
  status: number,
  codeOfStatus: (status: number) => ErrorCode = codeOfHttpStatus,
): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code = details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfStatus(status));
  return new ProtocolError(code, messageOf(given, status), {
    ...(details.metadata === undefined ? {} : { metadata: details.metadata }),
    ...(details.violations === undefined ? {} : { violations: details.violations }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: details.retryAfter }),
    ...(isErrorData(data) ? { data } : {}),
  });
}

function messageOf({ message, detail, title }: Readonly<Record<string, unknown>>, status: number): string {
  for (const text of [message, detail, title]) if (typeof text === "string" && text !== "") return text;
  return status === 0
    ? "The agent refused without saying why."
    : `The agent refused without saying why (HTTP status ${status}).`;
}

/** Parsed from JSON, so all that is left to tell is objects from the rest. */
function isErrorData(value: unknown): value is JsonObject | readonly JsonObject[] {
  return isRecord(value) || (Array.isArray(value) && value.every(isRecord));
}
