import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import type { Log } from "../../model/ports.ts";
import type { RpcMetadata, RpcRequest, RpcStatus } from "../../wire/rpc.ts";

/** Clients refuse answers with more than about 8 KiB of metadata, and the caller would see that instead of the error. */
const MAX_TEXT = 2_000;
const MAX_DETAILS_BYTES = 4_096;

const PRINTABLE = /^[ -~]*$/;
const NAME = /^[0-9a-z_.-]+$/;
/** Names that belong to HTTP/2 or to gRPC itself. */
const RESERVED =
  /^(grpc-|(connection|content-length|content-type|host|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$)/;
/** What callers say to the carrier, not to the service. */
const OF_THE_CARRIER = new Set([
  "grpc-timeout",
  "grpc-encoding",
  "grpc-accept-encoding",
  "accept-encoding",
  "te",
  "content-type",
]);

/**
 * Entries of text, those of one name joined. What is not printable ASCII may be a secret, so only its name is logged.
 * `rawHeaders` are names and values in turn; going through these is quicker than through the names of an object.
 */
export function textEntries(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  log: Log,
): RpcRequest["metadata"] {
  const entries: Record<string, string | undefined> = Object.create(null);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.startsWith(":") || OF_THE_CARRIER.has(name) || name.endsWith("-bin")) continue;
    const value = headers[name];
    const text = typeof value === "string" ? value : String(value);
    if (PRINTABLE.test(text)) entries[name] = text;
    else log.debug({ name }, "A metadata entry was not printable ASCII and was left out.");
  }
  return entries;
}

export function addMetadata(headers: OutgoingHttpHeaders, entries: RpcMetadata | undefined, log: Log): void {
  if (entries === undefined) return;
  for (const spelt of Object.keys(entries)) {
    const name = spelt.toLowerCase();
    const value = entries[spelt] ?? "";
    if (!NAME.test(name) || name.endsWith("-bin") || RESERVED.test(name)) {
      log.debug({ name: spelt }, "Metadata that gRPC has no form for was left out.");
    } else headers[name] = PRINTABLE.test(value) ? value : encodeURI(value.toWellFormed());
  }
}

/** The headers that say how a call ended. */
export function statusHeaders(status: RpcStatus, log: Log): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    "grpc-status": String(status.code),
    "grpc-message": encodeURI(shorten(status.message)),
  };
  addMetadata(headers, status.metadata, log);
  const { details } = status;
  if (details !== undefined && details.length <= MAX_DETAILS_BYTES) {
    headers["grpc-status-details-bin"] = base64(details);
  } else if (details !== undefined) {
    log.debug({ code: status.code, bytes: details.length }, "The details of an error were too long to be sent.");
  }
  return headers;
}

/** Half a surrogate pair cannot be encoded. */
function shorten(text: string): string {
  return (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`).toWellFormed();
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}
