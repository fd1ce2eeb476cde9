/** A peer's refusal as a ProtocolError, in whichever of the forms in use it comes. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { codeOfReason, readErrorDetails } from "../shared/error-details.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { codeOfJsonRpc } from "./errors.ts";

/** For refusals of the protocol that name no reason; several errors share a status, the commonest is taken. */
export const CODE_OF_GRPC_STATUS: Readonly<Record<string, ErrorCode>> = {
  NOT_FOUND: "TASK_NOT_FOUND",
  INVALID_ARGUMENT: "INVALID_PARAMS",
  FAILED_PRECONDITION: "UNSUPPORTED_OPERATION",
  UNIMPLEMENTED: "METHOD_NOT_FOUND",
  UNAUTHENTICATED: "UNAUTHENTICATED",
  PERMISSION_DENIED: "PERMISSION_DENIED",
  RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
  UNAVAILABLE: "UNAVAILABLE",
  DEADLINE_EXCEEDED: "UNAVAILABLE",
  INTERNAL: "INTERNAL_ERROR",
};

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
 * Reads a JSON-RPC error object, a `google.rpc.Status` or a problem document. The reason decides, then a JSON-RPC
 * code, then the name of a gRPC status; the HTTP status only when there is nothing else (`status` 0: there is none).
 */
export function readRefusal(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const details = readErrorDetails(given.data ?? given.details);
  const code =
    details.code ??
    codeOfJsonRpc(given.code) ??
    (typeof given.status === "string" ? CODE_OF_GRPC_STATUS[given.status] : undefined) ??
    codeOfProblem(given.type) ??
    (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  const data = given.data ?? given.details;
  return new ProtocolError(code, messageOf(given, status), {
    ...(details.metadata === undefined ? {} : { metadata: details.metadata }),
    ...(details.violations === undefined ? {} : { violations: details.violations }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: details.retryAfter }),
    ...(isErrorData(data) ? { data } : {}),
  });
}

function messageOf({ detail, message, title }: Readonly<Record<string, unknown>>, status: number): string {
  for (const text of [message, detail, title]) if (typeof text === "string" && text !== "") return text;
  return status === 0
    ? "The agent refused without saying why."
    : `The agent refused without saying why (HTTP status ${status}).`;
}

/** Early 1.0 text showed problem documents, with the error's name at the end of a URL. */
function codeOfProblem(type: unknown): ErrorCode | undefined {
  if (typeof type !== "string") return undefined;
  const name = type.slice(type.lastIndexOf("/") + 1);
  return codeOfReason(name.replaceAll("-", "_").toUpperCase());
}

/** Parsed from JSON, so all that is left to tell is objects from the rest. */
function isErrorData(value: unknown): value is JsonObject | readonly JsonObject[] {
  return isRecord(value) || (Array.isArray(value) && value.every(isRecord));
}
