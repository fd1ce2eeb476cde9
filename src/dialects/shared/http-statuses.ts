/** What HTTP statuses mean where nothing else says it: the answer of a proxy, a router, a login page. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";

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

/** An HTTP status without anything readable beside it. */
export function bareStatus(status: number, code: ErrorCode = codeOfHttpStatus(status)): ProtocolError {
  return new ProtocolError(code, `The agent's server answered with HTTP status ${status} only.`, {
    metadata: { httpStatus: String(status) },
  });
}
