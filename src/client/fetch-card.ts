/** Getting an agent's card from wherever the target says it is. */
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { ProtocolError } from "../model/errors.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../wire/exchange.ts";
import { createFetchExchanger } from "../wire/fetch-exchange.ts";
import { JsonLimitError, parseJson } from "../wire/json-limits.ts";
import { cardKey, dropCard, type FetchedCard, freshnessOf, type KeptCard, keepCard, keptCard } from "./card-cache.ts";
import { demandTrust, readVerified } from "./card-trust.ts";
import { credentialedWhenAsked } from "./credentialed.ts";
import { cardWithout, offers, readCardFor, type Wish } from "./dialects.ts";
import { ConnectionError } from "./errors.ts";
import { connectionError, withoutSecrets } from "./failures.ts";
import { lowerCaseNames } from "./headers.ts";
import { type CardOptions, DEFAULT_REQUEST_RETRY, DEFAULT_TIMEOUT_MS } from "./options.ts";
import { createRedirectGuard } from "./redirects.ts";
import { createRetryBackoff, isTransient, waitFor } from "./retry.ts";
import { joinSignals, sleep } from "./signals.ts";
import { CARD_PATH, findCardPlace } from "./target.ts";
import { createTracer, type Tracer } from "./trace.ts";

const MAX_CARD_BYTES = 1024 * 1024;
const NEVER = new AbortController().signal;

/** `target` is a host, an agent's base URL, the full URL of a card, or a file. Cards are kept as their server allows. */
export async function fetchCard(target: string, options: CardOptions = {}): Promise<FetchedCard> {
  const fetched = await findCard(target, options);
  const shown = withoutSecrets(fetched.url);
  const verification = await demandTrust(fetched.raw, shown, options);
  if (verification === undefined) return fetched;
  const read = (document: unknown) => toCard(document, shown, { ...options, cardUrl: fetched.url });
  return { ...fetched, card: readVerified(fetched.card, verification, read), verification };
}

async function findCard(target: string, options: CardOptions): Promise<FetchedCard> {
  const place = findCardPlace(target);
  if (place.kind === "file") return readCardFile(place.path, options);
  const unpublished = cardWithout(options.dialect, place.address);
  if (unpublished !== undefined) return { card: unpublished, url: place.address, raw: JSON.stringify(unpublished) };
  const source = createSource(options);
  const failures: ConnectionError[] = [];
  let unsuitable: FetchedCard | undefined;
  for (const url of place.urls) {
    const fetched = await fetchWithRetries(url, source);
    if (ConnectionError.is(fetched)) failures.push(fetched);
    else if (offers(fetched.card, options) || !isForced(options)) return fetched;
    else unsuitable ??= fetched;
  }
  if (unsuitable !== undefined) return unsuitable;
  // Where something was found that is no card, it says more than that there is nothing elsewhere.
  throw failures.find((error) => error instanceof NoCardError) ?? failures[0];
}

function isForced({ dialect, version }: Wish): boolean {
  return dialect !== undefined || version !== undefined;
}

/** Something was there, but no card. */
class NoCardError extends ConnectionError {
  constructor(message: string, cause?: unknown) {
    super("bad-card", message, { cause, permanent: true });
  }
}

interface Source {
  readonly exchange: Exchanger;
  readonly fetch: typeof globalThis.fetch;
  /** For whom cards are kept: what one caller was shown is not for another. */
  readonly reader: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly options: CardOptions;
  readonly tracer: Tracer | undefined;
}

function createSource(options: CardOptions): Source {
  const fetch = options.fetch ?? globalThis.fetch;
  const headers = lowerCaseNames(options.headers);
  const plain = createFetchExchanger(createRedirectGuard(fetch), { maxBodyBytes: MAX_CARD_BYTES });
  const { credentials } = options;
  return {
    // The address is the caller's own, so that nothing has to be kept from it.
    exchange: credentials === undefined ? plain : credentialedWhenAsked(plain, credentials),
    fetch,
    reader: credentials ?? fetch,
    headers,
    options,
    tracer: createTracer(options.onExchange, headers),
  };
}

/** Resolves with an error when there is no card at that place, so that another place can be tried. */
async function fetchWithRetries(url: string, source: Source): Promise<FetchedCard | ConnectionError> {
  const { retry = DEFAULT_REQUEST_RETRY, signal } = source.options;
  const backoff = createRetryBackoff(retry.attempts, retry);
  const joined = signal === undefined ? undefined : joinSignals(signal);
  try {
    for (;;) {
      try {
        return await fetchOnce(url, source);
      } catch (error) {
        const wait = isTransient(error) ? backoff.next() : undefined;
        if (wait === undefined) throw error;
        await sleep(waitFor(wait, error), joined?.signal ?? NEVER);
      }
    }
  } catch (error) {
    // Some servers answer every address with the same page.
    if (error instanceof NoCardError) return error;
    if (ProtocolError.is(error)) throw error;
    throw connectionError(error, { method: "GET", url, timeoutMs: source.options.timeoutMs });
  } finally {
    joined?.release();
  }
}

async function fetchOnce(url: string, source: Source): Promise<FetchedCard | ConnectionError> {
  const key = cardKey(url, source.headers, `${source.options.dialect ?? ""} ${source.options.version ?? ""}`);
  const kept = keptCard(source.reader, key);
  if (kept !== undefined && kept.freshUntil > performance.now()) return kept.fetched;
  const call = cardCall(url, source, kept);
  try {
    source.tracer?.request(call);
    const answer = await source.exchange(call);
    const text = await answer.text();
    source.tracer?.response(call, answer, text);
    if (answer.status === 304 && kept !== undefined) {
      kept.freshUntil = performance.now() + (freshnessOf(answer.headers) ?? 0);
      return kept.fetched;
    }
    if (answer.status !== 200) return refusedCard(url, answer);
    return takeCard(url, key, text, answer, source);
  } catch (error) {
    if (ProtocolError.is(error)) throw error;
    throw connectionError(error, call);
  }
}

function cardCall(url: string, { headers, options }: Source, kept: KeptCard | undefined): ExchangeCall {
  const etag = kept?.fetched.etag;
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
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
}

function takeCard(url: string, key: string, raw: string, answer: ExchangeAnswer, source: Source): FetchedCard {
  const etag = answer.headers.get("etag");
  const card = parseCard(raw, url, source.options);
  const fetched: FetchedCard = { card, url, raw, ...(etag === null ? {} : { etag }) };
  const freshFor = freshnessOf(answer.headers);
  if (freshFor === undefined || (freshFor === 0 && etag === null)) dropCard(source.reader, key);
  else keepCard(source.reader, key, { fetched, freshUntil: performance.now() + freshFor });
  return fetched;
}

function refusedCard(url: string, answer: ExchangeAnswer): ConnectionError {
  const { status } = answer;
  const where = `GET ${withoutSecrets(url)} answered ${status}`;
  const retryAfter = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const again = Number.isFinite(retryAfter) ? { retryAfter } : {};
  if (status === 401) {
    throw new ProtocolError("UNAUTHENTICATED", `${where}: the card is only shown to known callers. Give credentials.`);
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

async function readCardFile(path: string, wish: Wish): Promise<FetchedCard> {
  let raw: string;
  try {
    raw = await readFile(path, "utf8");
  } catch (cause) {
    throw new ConnectionError("bad-card", `The card file ${path} could not be read. Check the path.`, {
      cause,
      permanent: true,
    });
  }
  return { card: parseCard(raw, path, wish), url: pathToFileURL(path).href, raw };
}

function parseCard(raw: string, where: string, wish: Wish): FetchedCard["card"] {
  const shown = URL.canParse(where) ? withoutSecrets(where) : where;
  let value: unknown;
  try {
    value = parseJson(raw);
  } catch (cause) {
    if (!(cause instanceof JsonLimitError)) throw cause;
    throw new NoCardError(`What ${shown} holds is no agent card: ${cause.message}`, cause);
  }
  return toCard(value, shown, { ...wish, cardUrl: URL.canParse(where) ? where : undefined });
}

/** Reads what claims to be a card; `where` is for the message. */
export function toCard(
  value: unknown,
  where: string,
  options: Wish & { readonly cardUrl?: string | undefined },
): FetchedCard["card"] {
  const card = readCardFor(value, options.cardUrl, options);
  if (card !== undefined) return card;
  throw new NoCardError(
    `What ${where} holds is JSON but no agent card: it has no name and no interfaces. Check the address.`,
  );
}
