import type { ProtocolError } from "../../model/errors.ts";

/** Headers an error brings along on any binding over HTTP, and as metadata over gRPC. */
export function errorHeaders({ retryAfter, challenge }: ProtocolError): Readonly<Record<string, string>> | undefined {
  if (retryAfter === undefined && challenge === undefined) return undefined;
  return {
    ...(retryAfter !== undefined && { "retry-after": String(Math.ceil(retryAfter)) }),
    ...(challenge !== undefined && { "www-authenticate": challenge }),
  };
}
