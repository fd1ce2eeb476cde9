/** How the errors of JSON-RPC bindings show in HTTP. */
import type { ErrorCode, ProtocolError } from "../../model/errors.ts";

/**
 * A JSON-RPC error is a response, hence 200, also where the envelope is at fault: the servers of the official SDK do so
 * and public conformance kits expect it. These are about the HTTP request itself, and intermediaries should see them.
 */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

export function httpStatusOf({ code }: ProtocolError): number {
  return STATUS[code] ?? 200;
}
