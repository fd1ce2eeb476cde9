import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { createTlsFetch } from "../../auth/login/client-certificate.ts";
import type { CardVerification } from "../../auth/signatures/verify-card.ts";
import { loadExtensions } from "../../extension/installed.ts";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../../wire/exchange.ts";
import { JsonParseError, parseJson } from "../../wire/parse-json.ts";
import { createRetryBackoff, isTransient, joinSignals, retryDelay, sleep } from "../call/retry.ts";
import { offersDialect, type RequiredDialect, readCardFor, unpublishedCard } from "../dialects.ts";
import { ConnectionError, redactUrl, toConnectionError } from "../errors.ts";
import { type CardOptions, DEFAULT_REQUEST_RETRY, DEFAULT_TIMEOUT_MS } from "../options.ts";
import { createChallengedExchanger, lowerCaseNames } from "../transport/authenticate.ts";
import { createCallExchanger } from "../transport/credential-origins.ts";
import { createTracer, type Tracer } from "../transport/trace.ts";
import { CARD_PATH, locateCard } from "./addresses.ts";
import { readVerifiedCard, requireTrustedCard } from "./verify-card.ts";

const MAX_CARD_BYTES = 1024 * 1024;

/** `target` is a host, an agent's base URL, the full URL of a card, or a file. Cards are cached as servers allow. */
export async function fetchCard(target: string, options: CardOptions = {}): Promise<FetchedCard> {
  await loadExtensions("calling");
  return verifyFetched(await findCard(target, options), options);
}

/** Like `fetchCard`, for a card that came by another way; `url` is where from. */
export async function readGivenCard(
  document: JsonObject,
  url: string,
  options: CardOptions = {},
): Promise<FetchedCard> {
  await loadExtensions("calling");
  const card = toCard(document, redactUrl(url), { ...options, cardUrl: url });
  return verifyFetched({ card, url, raw: JSON.stringify(document) }, options);
}

async function verifyFetched(fetched: FetchedCard, options: CardOptions): Promise<FetchedCard> {
  const shown = redactUrl(fetched.url);
  const verification = await requireTrustedCard(fetched.raw, shown, options);
  if (verification === undefined) return fetched;
  const read = (document: unknown) => toCard(document, shown, { ...options, cardUrl: fetched.url });
  return { ...fetched, card: readVerifiedCard(fetched.card, verification, read), verification };
}

async function findCard(target: string, options: CardOptions): Promise<FetchedCard> {
  const place = locateCard(target);
  if (place.kind === "file") return readCardFile(place.path, options);
  const unpublished = unpublishedCard(options.dialect, place.address);
  if (unpublished !== undefined) return { card: unpublished, url: place.address, raw: JSON.stringify(unpublished) };
  const source = createCardSource(options, place.urls);
  const failures: ConnectionError[] = [];
  let unsuitable: FetchedCard | undefined;
  for (const url of place.urls) {
    const fetched = await fetchWithRetries(url, source);
    if (ConnectionError.is(fetched)) failures.push(fetched);
    else if (offersDialect(fetched.card, options) || !isForced(options)) return fetched;
    else unsuitable ??= fetched;
  }
  if (unsuitable !== undefined) return unsuitable;
  // A document that is not a card is a more useful error than a location without one.
  throw failures.find((error) => error instanceof NotACardError) ?? failures[0];
}

function isForced({ dialect, version }: RequiredDialect): boolean {
  return dialect !== undefined || version !== undefined;
}

/** A document was found, but it is not a card. */
class NotACardError extends ConnectionError {
  constructor(message: string, cause?: unknown) {
    super("bad-card", message, { cause, permanent: true });
  }
}

interface CardSource {
  readonly exchange: Exchanger;
  readonly cache: Map<string, CachedCard>;
  readonly headers: Readonly<Record<string, string>>;
  readonly options: CardOptions;
  readonly tracer: Tracer | undefined;
}

function createCardSource(options: CardOptions, urls: readonly string[]): CardSource {
  const fetch = createCardFetch(options, urls);
  const headers = lowerCaseNames(options.headers);
  const plain = createCallExchanger(fetch, MAX_CARD_BYTES);
  const { credentials } = options;
  return {
    // The caller chose this address, so it may receive the credentials.
    exchange: credentials === undefined ? plain : createChallengedExchanger(plain, credentials),
    cache: cacheOf(credentials ?? options.tls ?? options.fetch ?? globalThis.fetch),
    headers,
    options,
    tracer: createTracer(options.onExchange, headers),
  };
}

/** The caller chose the address, so its origin may see the certificate; one that it redirects to may not. */
function createCardFetch({ fetch = globalThis.fetch, tls }: CardOptions, urls: readonly string[]): typeof fetch {
  if (tls === undefined) return fetch;
  const origins = new Set(urls.map((url) => new URL(url).origin));
  return createTlsFetch(fetch, tls, (url) => origins.has(new URL(url).origin));
}

/** Resolves with an error if there is no card at that URL, so that the next one can be tried. */
async function fetchWithRetries(url: string, source: CardSource): Promise<FetchedCard | ConnectionError> {
  const { retry = DEFAULT_REQUEST_RETRY, signal } = source.options;
  const backoff = createRetryBackoff(retry.attempts, retry);
  const joined = signal === undefined ? undefined : joinSignals([signal]);
  try {
    for (;;) {
      try {
        return await fetchOnce(url, source);
      } catch (error) {
        const wait = isTransient(error) ? backoff.next() : undefined;
        if (wait === undefined) throw error;
        await sleep(retryDelay(wait, error), joined?.signal);
      }
    }
  } catch (error) {
    // Some servers respond to every URL with the same page.
    if (error instanceof NotACardError) return error;
    if (ProtocolError.is(error)) throw error;
    throw toConnectionError(error, { method: "GET", url, timeoutMs: source.options.timeoutMs });
  } finally {
    joined?.release();
  }
}

async function fetchOnce(url: string, source: CardSource): Promise<FetchedCard | ConnectionError> {
  const key = cardCacheKey(url, source.headers, `${source.options.dialect ?? ""} ${source.options.version ?? ""}`);
  const cached = source.cache.get(key);
  if (cached !== undefined && cached.freshUntil > performance.now()) return cached.fetched;
  const call = cardRequest(url, source, cached);
  try {
    source.tracer?.request(call);
    const answer = await source.exchange(call);
    const text = await answer.text();
    source.tracer?.response(call, answer, text);
    if (answer.status === 304 && cached !== undefined) {
      cached.freshUntil = performance.now() + (freshnessMs(answer.headers) ?? 0);
      return cached.fetched;
    }
    if (answer.status !== 200) return toCardError(url, answer);
    return parseAndCacheCard(url, key, text, answer, source);
  } catch (error) {
    if (ProtocolError.is(error)) throw error;
    throw toConnectionError(error, call);
  }
}

function cardRequest(url: string, { headers, options }: CardSource, cached: CachedCard | undefined): ExchangeCall {
  const etag = cached?.fetched.etag;
  return {
    method: "GET",
    url,
    headers: {
      ...headers,
      accept: "application/json",
      "a2a-version": "1.0",
      ...(etag === undefined ? {} : { "if-none-match": etag }),
    },
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    signal: options.signal,
  };
}

function parseAndCacheCard(
  url: string,
  key: string,
  raw: string,
  answer: ExchangeAnswer,
  source: CardSource,
): FetchedCard {
  const etag = answer.headers.get("etag");
  const card = parseCard(raw, url, source.options);
  const fetched: FetchedCard = { card, url, raw, etag: etag ?? undefined };
  const freshFor = freshnessMs(answer.headers);
  source.cache.delete(key);
  if (freshFor === undefined || (freshFor === 0 && etag === null)) return fetched;
  source.cache.set(key, { fetched, freshUntil: performance.now() + freshFor });
  const [oldest] = source.cache.keys();
  if (source.cache.size > MAX_CACHED_CARDS && oldest !== undefined) source.cache.delete(oldest);
  return fetched;
}

function toCardError(url: string, answer: ExchangeAnswer): ConnectionError {
  const { status } = answer;
  const where = `GET ${redactUrl(url)} answered ${status}`;
  const retryAfter = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const again = Number.isFinite(retryAfter) ? { retryAfter } : {};
  if (status === 401) {
    throw new ProtocolError("UNAUTHENTICATED", `${where}: the card requires authentication. Provide credentials.`);
  }
  if (status === 403) {
    throw new ProtocolError("PERMISSION_DENIED", `${where}: these credentials do not allow reading the card.`);
  }
  if (status === 429 || status >= 500) {
    throw new ProtocolError("UNAVAILABLE", `${where}. The server has a problem; try again later.`, again);
  }
  return new ConnectionError(
    "bad-card",
    `${where}: there is no agent card. Give the base URL of an agent (below which ${CARD_PATH} is found) or the full URL of its card.`,
    { permanent: true },
  );
}

async function readCardFile(path: string, wish: RequiredDialect): Promise<FetchedCard> {
  let raw: string;
  try {
    raw = await readFile(path, "utf8");
  } catch (cause) {
    const message = `The card file ${path} could not be read. Check the path.`;
    throw new ConnectionError("bad-card", message, { cause, permanent: true });
  }
  return { card: parseCard(raw, path, wish), url: pathToFileURL(path).href, raw };
}

function parseCard(raw: string, where: string, wish: RequiredDialect): FetchedCard["card"] {
  const shown = canParseUrl(where) ? redactUrl(where) : where;
  let value: unknown;
  try {
    value = parseJson(raw);
  } catch (cause) {
    if (!(cause instanceof JsonParseError)) throw cause;
    throw new NotACardError(`The document at ${shown} is not an agent card: ${cause.message}`, cause);
  }
  return toCard(value, shown, { ...wish, cardUrl: canParseUrl(where) ? where : undefined });
}

/** Decodes a card; `where` is for the error message. */
export function toCard(
  value: unknown,
  where: string,
  options: RequiredDialect & { readonly cardUrl?: string | undefined },
): FetchedCard["card"] {
  const card = readCardFor(value, options.cardUrl, options);
  if (card !== undefined) return card;
  const isNamed = isObject(value) && typeof value.name === "string" && value.name !== "";
  throw new NotACardError(
    isNamed
      ? `The card at ${where} has no interface: neither supportedInterfaces nor a url. Ask the agent's operator to add one.`
      : `The JSON at ${where} is not an agent card: it has neither a name nor interfaces. Check the address.`,
  );
}

export interface FetchedCard {
  readonly card: AgentCard;
  /** The candidate URL at which it was found. */
  readonly url: string;
  /** As received: signatures are verified against this, never against the decoded card. */
  readonly raw: string;
  readonly etag?: string;
  /** Result of the signature check, if the caller requested one. */
  readonly verification?: CardVerification;
}

/** As in RFC 9111: used without a request while fresh, then revalidated. */
interface CachedCard {
  readonly fetched: FetchedCard;
  freshUntil: number;
}

const MAX_CACHED_CARDS = 256;

/** One per `fetch` or caller: responses to another network path or another caller are not reused. */
const cardCaches = new WeakMap<object, Map<string, CachedCard>>();

function cacheOf(reader: object): Map<string, CachedCard> {
  const cache = cardCaches.get(reader) ?? new Map<string, CachedCard>();
  cardCaches.set(reader, cache);
  return cache;
}

/**
 * A server may return different cards to different callers, so the key contains a digest of the credentials, and also
 * the purpose for which the card is decoded.
 */
function cardCacheKey(url: string, headers: Readonly<Record<string, string>>, purpose: string): string {
  const names = Object.keys(headers).sort();
  if (names.length === 0) return `${url} ${purpose}`;
  const digest = createHash("sha256").update(JSON.stringify(names.map((name) => [name, headers[name]])));
  return `${url} ${purpose} ${digest.digest("base64")}`;
}

/** Milliseconds for which a response may be used without revalidation; `undefined` if it must not be stored. */
function freshnessMs(headers: { get(name: string): string | null }): number | undefined {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",");
  let maxAge = 0;
  for (const directive of directives) {
    const [name, value] = directive.trim().split("=", 2);
    if (name === "no-store") return undefined;
    if (name === "no-cache") return 0;
    if (name === "max-age") maxAge = parseSeconds(value);
  }
  return Math.max(0, maxAge - parseSeconds(headers.get("age") ?? undefined)) * 1000;
}

function parseSeconds(text: string | undefined): number {
  const seconds = Number.parseInt((text ?? "").replaceAll('"', ""), 10);
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : 0;
}
