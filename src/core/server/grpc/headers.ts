import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { type Log, MAX_TIMER_MS } from "../../model/ports.ts";
import { RPC_CODES, type RpcMetadata, type RpcRequest, type RpcStatus, RpcStatusError } from "../../wire/rpc.ts";

const TIMEOUT_PATTERN = /^(\d{1,8})([HMSmun])$/;

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Milliseconds of a `grpc-timeout`; undefined if too large for a timer. Throws if it is invalid. */
export function parseTimeout(header: string): number | undefined {
  const [, digits, unit = ""] = TIMEOUT_PATTERN.exec(header) ?? [];
  const unitMs = UNIT_MS[unit];
  if (digits === undefined || unitMs === undefined) {
    throw new RpcStatusError({ code: RPC_CODES.INTERNAL, message: "grpc-timeout is not a time." });
  }
  const ms = Math.ceil(Number(digits) * unitMs);
  return ms > MAX_TIMER_MS ? undefined : ms;
}

/**
 * Clients reject responses with more than about 8 KiB of metadata, and the caller would see that instead of the error.
 */
const MAX_STATUS_MESSAGE = 2_000;
const MAX_DETAILS_BYTES = 4_096;

const PRINTABLE = /^[ -~]*$/;
const METADATA_NAME = /^[0-9a-z_.-]+$/;
/** Names reserved by HTTP/2 or gRPC. */
const RESERVED_NAMES =
  /^(grpc-|(connection|content-length|content-type|host|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$)/;
/** Request headers for the carrier, not for the service. */
const TRANSPORT_HEADERS = new Set([
  "grpc-timeout",
  "grpc-encoding",
  "grpc-accept-encoding",
  "accept-encoding",
  "te",
  "content-type",
]);

/**
 * Text entries; values of the same name are joined. A value that is not printable ASCII may be a secret, so only its
 * name is logged. `rawHeaders` alternates names and values; iterating it is faster than iterating an object.
 */
export function decodeMetadata(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  log: Log,
): RpcRequest["metadata"] {
  const entries: Record<string, string | undefined> = Object.create(null);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.startsWith(":") || TRANSPORT_HEADERS.has(name) || name.endsWith("-bin")) continue;
    const value = headers[name];
    const text = typeof value === "string" ? value : String(value);
    if (PRINTABLE.test(text)) entries[name] = text;
    else log.debug({ name }, "A metadata entry was not printable ASCII and was left out.");
  }
  return entries;
}

export function encodeMetadata(headers: OutgoingHttpHeaders, entries: RpcMetadata | undefined, log: Log): void {
  if (entries === undefined) return;
  for (const spelt of Object.keys(entries)) {
    const name = spelt.toLowerCase();
    const value = entries[spelt] ?? "";
    if (!METADATA_NAME.test(name) || name.endsWith("-bin") || RESERVED_NAMES.test(name)) {
      log.debug({ name: spelt }, "Metadata that gRPC has no form for was left out.");
    } else headers[name] = PRINTABLE.test(value) ? value : encodeURI(value.toWellFormed());
  }
}

/** The headers that carry the status of a call. */
export function statusHeaders(status: RpcStatus, log: Log): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    "grpc-status": String(status.code),
    "grpc-message": encodeURI(truncate(status.message)),
  };
  encodeMetadata(headers, status.metadata, log);
  const { details } = status;
  if (details !== undefined && details.length <= MAX_DETAILS_BYTES) {
    headers["grpc-status-details-bin"] = base64(details);
  } else if (details !== undefined) {
    log.debug({ code: status.code, bytes: details.length }, "The details of an error were too long to be sent.");
  }
  return headers;
}

/** Lone surrogates cannot be encoded. */
function truncate(text: string): string {
  return (text.length <= MAX_STATUS_MESSAGE ? text : `${text.slice(0, MAX_STATUS_MESSAGE)}…`).toWellFormed();
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}
