/**
 * Which origins may receive the caller's credentials: neither a card nor a redirect decides that, since both may name any
 * host.
 */

import { canParseUrl } from "../../model/url.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../../wire/exchange.ts";
import { carrierError, createFetchExchanger } from "../../wire/fetch-exchange.ts";
import { isLoopback } from "../../wire/loopback.ts";
import type { GrpcAddress } from "./grpc-channels.ts";

interface CredentialOptions {
  /** URL of the card; without one, or with a file, the caller is trusted to have provided the card. */
  readonly cardUrl?: string | undefined;
  /** Origins besides the card's own, as `https://host` or `host:port`; `"card"` trusts every interface of the card. */
  readonly credentialOrigins?: readonly string[] | "card" | undefined;
  /** Set if the caller chose whether a gRPC address without a scheme uses TLS. */
  readonly grpcTls?: boolean | undefined;
}

interface Origin {
  readonly hostname: string;
  readonly port: string;
  readonly secure: boolean;
}

/** An interface: its URL, and for gRPC the address parsed from it. */
interface CredentialTarget {
  readonly url: string;
  readonly address?: GrpcAddress | undefined;
}

/** Whether an interface may receive the caller's headers and credentials. Throws a TypeError for an invalid origin. */
export function createCredentialGate(options: CredentialOptions): (target: CredentialTarget) => boolean {
  const { cardUrl, credentialOrigins = [], grpcTls } = options;
  const card = cardUrl === undefined ? undefined : parseOrigin(cardUrl);
  if (credentialOrigins === "card") return () => true;
  const listed = credentialOrigins.map(requireOrigin);
  if (card === undefined) return () => true;
  return ({ address, url }) => {
    if (address !== undefined) {
      const isListed = listed.some((origin) => sameServer(origin, grpcOrigin(address)));
      return isListed || isGrpcOfCard(card, grpcOrigin(address), grpcTls !== undefined);
    }
    const place = parseOrigin(url);
    return place !== undefined && [card, ...listed].some((origin) => sameServer(origin, place));
  };
}

/** gRPC uses its own port, so only hosts are compared; a card served with TLS does not allow gRPC without TLS. */
function isGrpcOfCard(card: Origin, grpc: Origin, isChosen: boolean): boolean {
  return sameHost(card, grpc) && (grpc.secure || !card.secure || isChosen);
}

function sameServer(one: Origin, other: Origin): boolean {
  return one.secure === other.secure && one.port === other.port && sameHost(one, other);
}

/** All loopback names are one host: the name in a card often differs from the one that the user typed. */
function sameHost(one: Origin, other: Origin): boolean {
  return one.hostname === other.hostname || (isLoopback(one.hostname) && isLoopback(other.hostname));
}

function parseOrigin(url: string): Origin | undefined {
  if (!canParseUrl(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  const secure = protocol === "https:";
  return { hostname, port: port || (secure ? "443" : "80"), secure };
}

function grpcOrigin({ authority, secure }: GrpcAddress): Origin {
  const colon = authority.lastIndexOf(":");
  return { hostname: authority.slice(0, colon), port: authority.slice(colon + 1), secure };
}

function requireOrigin(text: string): Origin {
  const place = parseOrigin(text.includes("://") ? text : `https://${text}`);
  if (place === undefined) throw new TypeError(`"${text}" is not an origin; write https://host or https://host:port.`);
  return place;
}

const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5;

/** Headers that reveal nothing about the caller and may be sent to any host. */
const FORWARDED_HEADERS = new Set(["accept", "a2a-version", "if-none-match"]);

export class RedirectError extends Error {
  override readonly name = "RedirectError";
  readonly advice: string;

  constructor(message: string, advice: string) {
    super(message);
    this.advice = advice;
  }
}

/**
 * The redirects of `fetch` itself drop `Authorization` across hosts, but keep every other header that may hold a key.
 * Here, redirects within one origin are followed as usual; across origins only a GET is followed, with only the
 * harmless headers; a POST never is, since its body is the caller's message. `exchange` must follow none itself.
 */
export function followRedirects(exchange: Exchanger): Exchanger {
  return async (given) => {
    const call = given.url.includes("@") ? moveUserInfoToHeader(given) : given;
    // The timeout is for all requests together.
    const deadline = call.timeoutMs === undefined ? undefined : performance.now() + call.timeoutMs;
    const answer = await exchange(call);
    return REDIRECT_STATUSES.has(answer.status) ? follow(exchange, call, answer, deadline) : answer;
  };
}

/** An exchanger through a `fetch`, with these rules for redirects. `maxBodyBytes` bounds responses that are not streams. */
export function createCallExchanger(fetch = globalThis.fetch, maxBodyBytes?: number): Exchanger {
  const manual: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "manual" });
  return followRedirects(createFetchExchanger(manual, maxBodyBytes === undefined ? {} : { maxBodyBytes }));
}

async function follow(
  exchange: Exchanger,
  first: ExchangeCall,
  redirected: ExchangeAnswer,
  deadline: number | undefined,
): Promise<ExchangeAnswer> {
  let call = first;
  let answer = redirected;
  for (let hops = 0; ; hops++) {
    const location = REDIRECT_STATUSES.has(answer.status) ? answer.headers.get("location") : null;
    if (location === null) return answer;
    answer.cancel();
    try {
      if (hops === MAX_REDIRECTS) {
        throw new RedirectError(`it redirected more than ${MAX_REDIRECTS} times`, "Check the address.");
      }
      call = redirectCall(call, answer.status, location);
    } catch (cause) {
      throw carrierError("unreachable", call.url, cause);
    }
    const timeoutMs = deadline === undefined ? {} : { timeoutMs: Math.max(1, deadline - performance.now()) };
    answer = await exchange({ ...call, ...timeoutMs });
  }
}

/** `fetch` rejects `user:password@` in a URL, so it is sent as the equivalent header. */
function moveUserInfoToHeader(call: ExchangeCall): ExchangeCall {
  if (!canParseUrl(call.url)) return call;
  const parsed = new URL(call.url);
  if (parsed.username === "" && parsed.password === "") return call;
  const pair = `${decodeURIComponent(parsed.username)}:${decodeURIComponent(parsed.password)}`;
  parsed.username = "";
  parsed.password = "";
  const authorization = `Basic ${Buffer.from(pair).toString("base64")}`;
  const isGiven = Object.keys(call.headers).some((name) => name.toLowerCase() === "authorization");
  return { ...call, url: parsed.href, headers: isGiven ? call.headers : { ...call.headers, authorization } };
}

function redirectCall(call: ExchangeCall, status: number, location: string): ExchangeCall {
  if (!canParseUrl(location, call.url)) {
    throw new RedirectError("it redirected to an address that is not a URL", "Check the address.");
  }
  const from = new URL(call.url);
  const to = new URL(location, call.url);
  const { method } = call;
  const readOnly = method === "GET" || method === "HEAD";
  // 301, 302 and 303 would turn a POST into a GET, which is a different request.
  const keepsMethod = readOnly || status === 307 || status === 308;
  const sameOrigin = from.origin === to.origin;
  const target = `${to.protocol}//${to.host}${to.pathname}`;
  if (to.protocol !== "https:" && to.protocol !== from.protocol) {
    throw new RedirectError(`it redirected to ${target}, which is less secure`, `Use ${target} if you trust it.`);
  }
  if (!keepsMethod || (!sameOrigin && !readOnly)) {
    throw new RedirectError(`it redirected a ${method} to ${target}`, `Use ${target} directly if you trust it.`);
  }
  if (sameOrigin) return { ...call, url: to.href };
  const forwarded = Object.entries(call.headers).filter(([name]) => FORWARDED_HEADERS.has(name.toLowerCase()));
  return { ...call, url: to.href, headers: Object.fromEntries(forwarded) };
}
