/** Request headers of more than one dialect: idempotency keys, cursors, media types. Header names are lower-case. */

import { invalidParams, ProtocolError } from "../../../model/errors.ts";
import { EXTENSIONS } from "../../../model/extensions.ts";
import type { CallContext, Operation, OperationKind } from "../../../model/operation.ts";
import { decodeUtf8, type JsonLimits, JsonParseError, parseJson } from "../../../wire/parse-json.ts";
import type { AgentService, ServeContext } from "../../contract.ts";

/** Parses a request's JSON; throws a ProtocolError for invalid JSON and for exceeded limits. */
export function parseBody(body: Uint8Array, limits: JsonLimits): unknown {
  try {
    return parseJson(decodeUtf8(body), limits);
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
    if (error.reason === "number") throw new ProtocolError("INVALID_PARAMS", error.message);
    throw new ProtocolError(error.isLimitExceeded ? "INVALID_REQUEST" : "PARSE_ERROR", error.message);
  }
}

type Headers = Readonly<Record<string, string | undefined>>;

const NO_ITEMS: readonly string[] = [];

/** Parses a comma-separated header. */
export function parseListHeader(header: string | undefined): readonly string[] {
  if (header === undefined) return NO_ITEMS;
  return header
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Only sends need idempotency: they start work that must not be started twice. */
function idempotencyKeyOf(operation: Operation, headers: Headers, extensions: readonly string[]): string | undefined {
  if (operation.kind !== "send" && operation.kind !== "stream") return undefined;
  const header = headers["idempotency-key"];
  if (header !== undefined && header !== "") return header;
  return extensions.includes(EXTENSIONS.idempotency) ? operation.message.messageId : undefined;
}

/** The context to dispatch an operation with. `headers` may also be the metadata of a gRPC call. */
export function createCall(
  operation: Operation,
  headers: Headers,
  { caller }: ServeContext,
  dialect: string,
  extensions: readonly string[] = NO_ITEMS,
  tenant = "",
): CallContext {
  const idempotencyKey = idempotencyKeyOf(operation, headers, extensions);
  return { caller, tenant, extensions, dialect, idempotencyKey };
}

/** Looks up the operation of each method, and the first method of each operation. */
export function compileMethods<Kind extends OperationKind>(version: string, methods: Readonly<Record<string, Kind>>) {
  const kinds = new Map(Object.entries(methods));
  const names = new Map([...kinds].toReversed().map(([method, kind]) => [kind, method]));
  return {
    kindOfMethod(method: string): Kind {
      const kind = kinds.get(method);
      if (kind !== undefined) return kind;
      throw new ProtocolError("METHOD_NOT_FOUND", `Method not found in A2A ${version}.`, { metadata: { method } });
    },
    methodOf: (kind: Kind): string => names.get(kind) as string,
  };
}

/** Operations that the agent does not support are refused before the request is decoded. */
export function requireCapability(kind: OperationKind, { card }: AgentService): void {
  if (kind.startsWith("push-") && card.capabilities.pushNotifications !== true) {
    throw new ProtocolError("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }
}

/** Reply headers that list what was activated. */
export function activationHeaders(
  service: AgentService,
  requested: readonly string[],
  name: string,
): Readonly<Record<string, string>> | undefined {
  if (requested.length === 0) return undefined;
  const active = service.activate(requested);
  return active.length === 0 ? undefined : { [name]: active.join(",") };
}

/** A request without a content type is assumed to have the expected one. */
export function requireMediaType(headers: Headers, accepts: (mediaType: string) => boolean): void {
  const mediaType = mediaTypeOf(headers);
  if (mediaType !== undefined && !accepts(mediaType)) throw unsupportedContentType(mediaType);
}

/** Without parameters, in lower case; undefined if the request has none. */
export function mediaTypeOf(headers: Headers): string | undefined {
  const header = headers["content-type"];
  if (header === undefined || header === "" || header === "application/json") return header || undefined;
  const end = header.indexOf(";");
  return (end === -1 ? header : header.slice(0, end)).trim().toLowerCase();
}

/** The message names the header, since `curl -d` sends a form by default. */
export function unsupportedContentType(contentType: string): ProtocolError {
  return new ProtocolError(
    "CONTENT_TYPE_NOT_SUPPORTED",
    "The request must be JSON and say so: send the header Content-Type: application/json.",
    { metadata: { contentType } },
  );
}

export function isJson(mediaType: string): boolean {
  return mediaType === "application/json" || mediaType.endsWith("+json");
}

const CURSOR = /^\d{1,15}$/;

/** The number of the last event that the caller has received, from `Last-Event-ID`. */
export function parseLastEventId(lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === "") return undefined;
  if (!CURSOR.test(lastEventId)) throw invalidParams("Last-Event-ID", "is not the number of an event of this task");
  return Number(lastEventId);
}
