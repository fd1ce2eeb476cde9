/** What travels in headers beside a request: version, extensions, keys, media types. Header names are lower-case here. */
import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Operation } from "../../model/operation.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";

export const VERSION = "1.0";

type Headers = ExchangeRequest["headers"];

const VERSION_FORM = /^(\d+\.\d+)(?:\.\d+)?$/;

/** Throws unless the caller asks for this version. The patch part never matters; none at all means 0.3 (§3.6.2). */
export function requireVersion(exchange: ExchangeRequest): void {
  const named = exchange.headers["a2a-version"]?.trim() || versionInQuery(exchange.query);
  if (VERSION_FORM.exec(named)?.[1] === VERSION) return;
  const said = named === "" ? "No A2A-Version means 0.3, which" : `A2A-Version ${named}`;
  throw new ProtocolError("VERSION_NOT_SUPPORTED", `${said} is not spoken here; send A2A-Version: ${VERSION}.`, {
    metadata: { requestedVersion: named === "" ? "0.3" : named.slice(0, 32), supportedVersions: VERSION },
  });
}

function versionInQuery(query: string): string {
  if (query === "") return "";
  for (const [name, value] of new URLSearchParams(query)) {
    if (name.toLowerCase() === "a2a-version") return value.trim();
  }
  return "";
}

const NONE: readonly string[] = [];

export function requestedExtensions(headers: Headers): readonly string[] {
  const header = headers["a2a-extensions"];
  if (header === undefined) return NONE;
  return header
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
}

/** Only sends start work that must not be started twice. */
export function idempotencyKeyOf(
  operation: Operation,
  headers: Headers,
  extensions: readonly string[],
): string | undefined {
  if (operation.kind !== "send" && operation.kind !== "stream") return undefined;
  const header = headers["idempotency-key"];
  if (header !== undefined && header !== "") return header;
  return extensions.includes(EXTENSIONS.idempotency) ? operation.message.messageId : undefined;
}

/** A request that does not say what it is, is taken for what is expected. */
export function requireMediaType(headers: Headers, accepts: (mediaType: string) => boolean): void {
  const header = headers["content-type"];
  if (header === undefined || header === "" || header === "application/json") return;
  const end = header.indexOf(";");
  const mediaType = (end === -1 ? header : header.slice(0, end)).trim().toLowerCase();
  if (accepts(mediaType)) return;
  throw new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must be JSON.", {
    metadata: { contentType: mediaType },
  });
}
