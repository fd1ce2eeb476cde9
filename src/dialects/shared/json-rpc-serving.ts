/** What every JSON-RPC binding asks of a request before it looks at the method, and how its errors show in HTTP. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { JsonRpcRequest } from "../../wire/json-rpc.ts";
import { isJson, requireMediaType } from "./request-headers.ts";

/**
 * An error of an operation is an answer, hence 200. These are about the HTTP request itself, and intermediaries
 * should see them; clients look into the body first in any case.
 */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  PARSE_ERROR: 400,
  INVALID_REQUEST: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

export function httpStatusOf({ code }: ProtocolError): number {
  return STATUS[code] ?? 200;
}

export function requireAnswerable(request: JsonRpcRequest, headers: ExchangeRequest["headers"]): void {
  if (request.notification) {
    throw new ProtocolError("INVALID_REQUEST", "The request needs an id: every A2A method is answered.");
  }
  requireMediaType(headers, isJson);
}
