/** Cards that were fetched, kept as RFC 9111 allows: while fresh without asking, afterwards for revalidation. */
import { createHash } from "node:crypto";
import type { CardVerification } from "../auth/card-verifying.ts";
import type { AgentCard } from "../model/card.ts";

export interface FetchedCard {
  readonly card: AgentCard;
  /** Where it was found, also after a redirect of ours to another candidate. */
  readonly url: string;
  /** As received: signatures are verified over this, never over what was read from it. */
  readonly raw: string;
  readonly etag?: string;
  /** What its signatures say, where the caller wants to know. */
  readonly verification?: CardVerification;
}

export interface KeptCard {
  readonly fetched: FetchedCard;
  freshUntil: number;
}

const MAX_KEPT = 256;

/** One per `fetch` or caller: what another way into the network, or another caller, was answered is nothing to go by. */
const caches = new WeakMap<object, Map<string, KeptCard>>();

/**
 * A server may show different cards to different callers, so credentials are part of the key, as a digest; and so is
 * what the card is read for.
 */
export function cardKey(url: string, headers: Readonly<Record<string, string>>, purpose: string): string {
  const names = Object.keys(headers).sort();
  if (names.length === 0) return `${url} ${purpose}`;
  const digest = createHash("sha256").update(JSON.stringify(names.map((name) => [name, headers[name]])));
  return `${url} ${purpose} ${digest.digest("base64")}`;
}

export function keptCard(reader: object, key: string): KeptCard | undefined {
  return caches.get(reader)?.get(key);
}

export function keepCard(reader: object, key: string, kept: KeptCard): void {
  let cache = caches.get(reader);
  if (cache === undefined) {
    cache = new Map();
    caches.set(reader, cache);
  }
  cache.delete(key);
  cache.set(key, kept);
  if (cache.size <= MAX_KEPT) return;
  const [oldest] = cache.keys();
  if (oldest !== undefined) cache.delete(oldest);
}

export function dropCard(reader: object, key: string): void {
  caches.get(reader)?.delete(key);
}

/** Milliseconds for which an answer may be used unasked; `undefined` when it must not be kept at all. */
export function freshnessOf(headers: { get(name: string): string | null }): number | undefined {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",");
  let maxAge = 0;
  for (const directive of directives) {
    const [name, value] = directive.trim().split("=", 2);
    if (name === "no-store") return undefined;
    if (name === "no-cache") return 0;
    if (name === "max-age") maxAge = secondsIn(value);
  }
  return Math.max(0, maxAge - secondsIn(headers.get("age") ?? undefined)) * 1000;
}

function secondsIn(text: string | undefined): number {
  const seconds = Number.parseInt((text ?? "").replaceAll('"', ""), 10);
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : 0;
}
