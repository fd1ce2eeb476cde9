import { createHash } from "node:crypto";
import type { CardServing } from "../../dialects/contract.ts";
import type { AgentCard } from "../../model/card.ts";
import { isObject, type JsonObject, type JsonValue, type Writable } from "../../model/json.ts";
import type { FullReply, RequestHead } from "../../wire/exchange.ts";

interface CachedDocument {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

const MAX_AGE_SECONDS = 60;

/**
 * Card for readers that name no version: the document of one version, or one that readers of all versions understand.
 */
export type CardForm = { readonly version: string } | "hybrid";

/** `version` is the one that the reader names, if any. */
export type CardReply = (card: AgentCard, version: string | undefined, exchange: RequestHead) => FullReply;

/** The documents of one path as bytes with their ETags, created once per card object and version. */
export function createCardDocuments(servings: readonly CardServing[], form: CardForm, now: () => number): CardReply {
  const documents = new Map<string, WeakMap<AgentCard, CachedDocument>>();
  const isServed = (wanted: string) => servings.some(({ version }) => version === wanted);
  /** An unsupported version gets the default document rather than an error. */
  const choose = (version: string | undefined): string => {
    if (version !== undefined && isServed(version)) return version;
    return form !== "hybrid" && isServed(form.version) ? form.version : "hybrid";
  };
  const documentOf = (card: AgentCard, chosen: string): CachedDocument => {
    const cached = documents.get(chosen) ?? new WeakMap<AgentCard, CachedDocument>();
    documents.set(chosen, cached);
    const document = cached.get(card) ?? toDocument(card, servings, chosen, now());
    cached.set(card, document);
    return document;
  };
  return (card, version, exchange) => {
    const { body, headers, etag } = documentOf(card, choose(version));
    if (isNotModified(exchange, etag, headers["last-modified"])) return { status: 304, headers, body: undefined };
    return { status: 200, headers, body };
  };
}

function toDocument(card: AgentCard, servings: readonly CardServing[], chosen: string, now: number): CachedDocument {
  const members = servings
    .filter(({ version }) => chosen === "hybrid" || version === chosen)
    .map((serving) => serving.document(card))
    .reduce((merged, next) => merge(merged, next));
  const body = Buffer.from(JSON.stringify(members));
  const etag = etagOf(body);
  const headers = {
    "content-type": "application/json",
    "cache-control": `public, max-age=${MAX_AGE_SECONDS}`,
    etag,
    "last-modified": new Date(now).toUTCString(),
    vary: "A2A-Version",
  };
  return { body, headers, etag };
}

/** Merges two documents: objects recursively; on conflict the first wins. */
function merge(first: JsonObject, second: JsonObject): JsonObject {
  const merged: Writable<JsonObject> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const known = merged[name];
    merged[name] = known === undefined ? value : mergeValues(known, value);
  }
  return merged;
}

function mergeValues(first: JsonValue, second: JsonValue | undefined): JsonValue {
  if (Array.isArray(first) && Array.isArray(second)) {
    if (first.length !== second.length) return first;
    return first.map((item, at) => mergeValues(item, second[at]));
  }
  return isObject(first) && isObject(second) ? merge(first, second) : first;
}

/** Whether the reader has this document. Its ETag takes precedence (RFC 9110 §13.2.2). */
function isNotModified(exchange: RequestHead, etag: string, lastModified: string | undefined): boolean {
  const tags = exchange.headers["if-none-match"];
  if (tags !== undefined) return matchesEtag(tags, etag);
  const since = Date.parse(exchange.headers["if-modified-since"] ?? "");
  return lastModified !== undefined && since >= Date.parse(lastModified);
}

export function etagOf(body: string | Buffer): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
}

/** Weak comparison, as RFC 9110 requires for If-None-Match. */
export function matchesEtag(header: string, etag: string): boolean {
  return header.split(",").some((candidate) => {
    const tag = candidate.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
