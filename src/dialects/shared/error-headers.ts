import type { ProtocolError } from "../../model/errors.ts";

/** Headers an error brings along on any HTTP binding. */
export function errorHeaders(error: ProtocolError): Readonly<Record<string, string>> | undefined {
  return error.retryAfter === undefined ? undefined : { "retry-after": String(Math.ceil(error.retryAfter)) };
}
