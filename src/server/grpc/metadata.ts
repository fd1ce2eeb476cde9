import { Metadata } from "@grpc/grpc-js";
import type { Log } from "../../model/ports.ts";
import type { RpcMetadata, RpcStatus } from "../../wire/rpc.ts";

/** Clients refuse answers with more than about 8 KiB of metadata, and the caller would see that instead of the error. */
const MAX_TEXT = 2_000;
const MAX_DETAILS_BYTES = 4_096;

const PRINTABLE = /^[ -~]*$/;
/** Names that belong to HTTP/2 or to gRPC itself. The library throws on some of them when it is too late to catch. */
const RESERVED =
  /^(:|grpc-|(connection|content-length|content-type|host|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$)/i;

/** Entries of text, those of one name joined. */
export function textEntries(metadata: Metadata): Record<string, string | undefined> {
  const values = metadata.toJSON();
  const entries: Record<string, string | undefined> = Object.create(null);
  for (const name of Object.keys(values)) {
    if (name.endsWith("-bin")) continue;
    const list = values[name] as readonly string[];
    entries[name] = list.length === 1 ? list[0] : list.join(",");
  }
  return entries;
}

export function toMetadata(entries: RpcMetadata | undefined, log: Log): Metadata {
  const metadata = new Metadata();
  if (entries === undefined) return metadata;
  for (const name of Object.keys(entries)) {
    if (!setEntry(metadata, name, entries[name] as string)) {
      log.debug({ name }, "Metadata that gRPC has no form for was left out.");
    }
  }
  return metadata;
}

function setEntry(metadata: Metadata, name: string, value: string): boolean {
  if (RESERVED.test(name)) return false;
  try {
    metadata.set(name, PRINTABLE.test(value) ? value : encodeURI(value.toWellFormed()));
    return true;
  } catch {
    return false;
  }
}

export interface StatusFields {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

export function toStatusFields(status: RpcStatus, log: Log): StatusFields {
  const metadata = toMetadata(status.metadata, log);
  const { details } = status;
  if (details !== undefined && details.length <= MAX_DETAILS_BYTES) {
    metadata.set("grpc-status-details-bin", Buffer.from(details.buffer, details.byteOffset, details.byteLength));
  } else if (details !== undefined) {
    log.debug({ code: status.code, bytes: details.length }, "The details of an error were too long to be sent.");
  }
  return { code: status.code, details: shorten(status.message), metadata };
}

/** The library fails on half a surrogate pair. */
function shorten(text: string): string {
  return (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`).toWellFormed();
}
