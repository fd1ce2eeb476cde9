/** A search that also asks other registries (ARD §8), within a deadline; those that do not answer are named. */

import { GuardedFetchError } from "../../core/auth/guarded-fetch/errors.ts";
import { isObject, type JsonObject, type JsonValue, listOf } from "../../core/model/json.ts";
import type { Log } from "../../core/model/ports.ts";
import { canParseUrl } from "../../core/model/url.ts";
import { JsonParseError, parseJson } from "../../core/wire/parse-json.ts";
import { REGISTRY_MEDIA_TYPE, toCatalogEntry } from "./catalog.ts";
import { toPublisher } from "./entry.ts";
import {
  decodePageToken,
  digestOf,
  encodePageToken,
  invalidPageToken,
  MAX_TOKEN_LENGTH,
  type SearchRequest,
} from "./query.ts";
import type { Registry } from "./registry.ts";

export interface FederationOptions {
  readonly registry: Pick<Registry, "search">;
  /** Bases of other registries. */
  readonly peers: readonly string[];
  readonly fetch: typeof globalThis.fetch;
  readonly log: Log;
  /** One life of this process: a search that comes back is recognised. */
  readonly instance: string;
  /** Base of this registry, as others reach it. */
  readonly source: () => string;
  readonly deadlineMs?: number;
}

/**
 * Registries that a search came through. A registry that does not know the header is asked for its own entries only, so
 * that no circle of registries can go on for ever.
 */
export const VIA_HEADER = "registry-via";
const MAX_HOPS = 3;
const DEADLINE_MS = 3_000;
const MAX_RESULTS = 100;

interface Unanswered {
  readonly url: string;
  readonly reason: string;
}

/** Results of one registry, best first, and where the next page begins after any number of them. */
interface Answer {
  readonly results: readonly JsonObject[];
  readonly positionAfter: (count: number) => JsonObject | null;
  readonly unanswered?: readonly Unanswered[];
}

const NOTHING: Answer = { results: [], positionAfter: () => null };

export type FederatedSearch = (
  owner: string,
  request: SearchRequest,
  body: JsonObject,
  via: readonly string[],
) => Promise<JsonObject>;

/** The answer to `POST /search`. `body` is the request as it was received. */
export function createFederatedSearch(options: FederationOptions): FederatedSearch {
  const { registry, peers, source } = options;

  async function searchOwn(owner: string, { query, pageSize }: SearchRequest, position: JsonObject): Promise<Answer> {
    const { s: score, i: id } = position;
    const isPosition = typeof score === "number" && typeof id === "string";
    if (!isPosition && (score !== undefined || id !== undefined)) throw invalidPageToken();
    const { found, hasMore } = await registry.search(owner, query, pageSize, isPosition ? { score, id } : undefined);
    return {
      results: found.map(({ entry, score: relevance }) => ({
        ...toCatalogEntry(entry),
        score: Math.max(1, Math.round(relevance * 100)),
        source: source(),
      })),
      positionAfter(count) {
        if (count === found.length && !hasMore) return null;
        const last = found[count - 1];
        return last === undefined ? position : { s: last.score, i: last.entry.id };
      },
    };
  }

  return async (owner, request, body, via) => {
    const { federation, pageSize, pageToken, query } = request;
    const isAsked = via.length === 0 ? federation === "auto" : via.length < MAX_HOPS;
    const asked = isAsked && !via.includes(options.instance) ? peers : [];
    const digest = digestOf("search", owner, query, asked);
    const positions = pageToken === undefined ? undefined : readPositions(pageToken, digest, asked.length + 1);
    const sources = [undefined, ...asked].map((peer, at): Promise<Answer> => {
      const position = positions === undefined ? {} : positions[at];
      if (position === null || position === undefined) return Promise.resolve(NOTHING);
      if (peer === undefined) return searchOwn(owner, request, position);
      return askPeer(options, peer, body, pageSize, position, via);
    });
    const answers = await Promise.all(sources);
    const { results, next } = mergeAnswers(answers, pageSize);
    const unanswered = answers.flatMap((answer) => answer.unanswered ?? []);
    return {
      results,
      referrals: federation === "referrals" ? peers.map(toReferral) : undefined,
      pageToken: next === undefined ? undefined : encodePageToken(digest, { p: next }),
      unanswered: unanswered.length > 0 ? unanswered.map(({ url, reason }) => ({ url, reason })) : undefined,
    };
  };
}

function readPositions(token: string, digest: string, count: number): readonly (JsonObject | null)[] {
  const { p } = decodePageToken(token, digest);
  const positions = listOf(p).filter((one): one is JsonObject | null => one === null || isObject(one));
  if (positions.length !== count) throw invalidPageToken();
  return positions;
}

/**
 * The best of all. What this registry has itself is always shown, as an identifier proves nothing; what its peers list is
 * left out if it is known here, or from another peer that ranks it higher.
 */
function mergeAnswers(answers: readonly Answer[], size: number) {
  const queues = answers.map(({ results }) => ({ results, taken: 0 }));
  const own = new Set<unknown>(answers[0]?.results.map(({ identifier }) => identifier));
  const ofPeers = new Set<unknown>();
  const merged: JsonObject[] = [];
  while (merged.length < size) {
    const heads = queues.flatMap((queue) => {
      const head = queue.results[queue.taken];
      return head === undefined ? [] : [{ queue, head }];
    });
    const [first, ...others] = heads;
    if (first === undefined) break;
    const best = others.reduce((one, other) => (scoreOf(other.head) > scoreOf(one.head) ? other : one), first);
    best.queue.taken++;
    const { identifier } = best.head;
    const isOwn = best.queue === queues[0];
    if (isOwn || !(own.has(identifier) || ofPeers.has(identifier))) merged.push(best.head);
    if (!isOwn) ofPeers.add(identifier);
  }
  const next = answers.map(({ positionAfter }, at) => positionAfter(queues[at]?.taken ?? 0));
  return { results: merged, next: next.every((position) => position === null) ? undefined : next };
}

const scoreOf = ({ score }: JsonObject) => (typeof score === "number" ? score : 0);

async function askPeer(
  { fetch, instance, log, peers, deadlineMs = DEADLINE_MS }: FederationOptions,
  peer: string,
  { query }: JsonObject,
  pageSize: number,
  position: JsonObject,
  via: readonly string[],
): Promise<Answer> {
  const { t: token, n = 0 } = position;
  const skipped = Number.isSafeInteger(n) && Number(n) >= 0 ? Number(n) : 0;
  const size = Math.min(MAX_RESULTS, pageSize + skipped);
  const request = {
    query,
    federation: "none",
    pageSize: size,
    pageToken: typeof token === "string" ? token : undefined,
  };
  try {
    const response = await fetch(`${peer}/search`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        [VIA_HEADER]: [...via, instance].join(","),
      },
      body: JSON.stringify(request),
      // Those behind it have to answer in time for this one to answer in time.
      signal: AbortSignal.timeout(deadlineMs / 2 ** via.length),
    });
    const text = await response.text();
    if (response.status !== 200) return noAnswer(peer, `HTTP ${response.status}`, log);
    const maxToken = Math.floor(MAX_POSITIONS_LENGTH / peers.length);
    return readAnswer(parseJson(text), peer, position, skipped, maxToken) ?? noAnswer(peer, "not understood", log);
  } catch (error) {
    return noAnswer(peer, describeFailure(error), log);
  }
}

/** Of a page token, which is Base64, without its digest and the position in this registry. */
const MAX_POSITIONS_LENGTH = (MAX_TOKEN_LENGTH * 3) / 4 - 512;

/** `maxToken`: a longer token of the peer would make one of ours that is refused when it comes back. */
function readAnswer(
  value: unknown,
  peer: string,
  position: JsonObject,
  skipped: number,
  maxToken: number,
): Answer | undefined {
  if (!isObject(value) || !Array.isArray(value.results)) return undefined;
  const results = listOf(value.results)
    .slice(0, MAX_RESULTS)
    .map((item) => toResult(item, peer))
    .filter((item) => item !== undefined);
  // What another registry ranks in a strange order is taken as it comes.
  let least = 100;
  const ranked = results.map((result) => {
    least = Math.min(least, scoreOf(result));
    return { ...result, score: least };
  });
  const { pageToken } = value;
  const isUsable = typeof pageToken === "string" && Buffer.byteLength(JSON.stringify({ t: pageToken })) < maxToken;
  const unanswered = listOf(value.unanswered).flatMap((one) => {
    const { url, reason } = isObject(one) ? one : {};
    return isHttpUrl(url) && typeof reason === "string" ? [{ url, reason: reason.slice(0, MAX_TEXT_LENGTH) }] : [];
  });
  if (typeof pageToken === "string" && !isUsable) unanswered.push({ url: peer, reason: "its page token is too long" });
  return {
    results: ranked.slice(skipped),
    positionAfter(count) {
      if (skipped + count < ranked.length) return { ...position, n: skipped + count };
      return isUsable ? { t: pageToken } : null;
    },
    unanswered,
  };
}

const MAX_TEXT_LENGTH = 1_000;
/** Of the metadata of an entry: what a caller can check, or what makes it more careful. */
const PASSED_METADATA = ["health", "dialects", "bindings", "hosts", "provider", "heldBack"] as const;

/**
 * An entry of another registry; undefined for what is not one, and for one that points anywhere but to the web. It is that
 * of the registry which was asked, whatever that says about where it got it: else it could pass for one of this registry.
 */
function toResult(item: unknown, peer: string): JsonObject | undefined {
  if (!isObject(item)) return undefined;
  const { identifier, displayName, type, url, data, score, metadata } = item;
  if (typeof identifier !== "string" || typeof displayName !== "string" || typeof type !== "string") return undefined;
  if (url === undefined ? !isObject(data) || hasOtherUrls(data) : data !== undefined || !isHttpUrl(url))
    return undefined;
  const points = typeof score === "number" && Number.isFinite(score) ? Math.round(score) : 0;
  const told = isObject(metadata) ? metadata : {};
  const passed = PASSED_METADATA.flatMap((name) => {
    const value = told[name];
    const isShort = typeof value === "string" && value.length <= MAX_TEXT_LENGTH;
    return isShort || typeof value === "boolean" ? [[name, value] as const] : [];
  });
  return {
    ...item,
    metadata: Object.fromEntries(passed),
    score: Math.min(100, Math.max(0, points)),
    source: peer,
  };
}

function isHttpUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && canParseUrl(value);
}

/** A card with links that a page which shows it would run. */
function hasOtherUrls(value: JsonValue): boolean {
  if (typeof value === "string") return /^\s*(?:javascript|vbscript|data):/i.test(value);
  if (Array.isArray(value)) return value.some(hasOtherUrls);
  return isObject(value) && Object.values(value).some((member) => member !== undefined && hasOtherUrls(member));
}

function noAnswer(url: string, reason: string, log: Log): Answer {
  log.debug({ peer: url, reason }, "A registry did not answer.");
  return { ...NOTHING, unanswered: [{ url, reason }] };
}

function describeFailure(error: unknown): string {
  if (error instanceof JsonParseError) return "not understood";
  if (error instanceof Error && /^(?:Timeout|Abort)Error$/.test(error.name)) return "timeout";
  return error instanceof GuardedFetchError ? error.code : "unreachable";
}

function toReferral(peer: string): JsonObject {
  const place = new URL(peer);
  const segments = [place.port, ...place.pathname.split("/")].filter((segment) => /^[A-Za-z0-9._-]+$/.test(segment));
  return {
    identifier: ["urn:air", toPublisher(place), ...segments.filter((one) => one !== "registry"), "registry"].join(":"),
    displayName: `Registry at ${place.host}`,
    type: REGISTRY_MEDIA_TYPE,
    url: `${peer}/search`,
  };
}
