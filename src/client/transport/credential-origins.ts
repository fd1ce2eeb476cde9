/**
 * Which origins may receive the caller's credentials: neither a card nor a redirect decides that, since both may name any
 * host.
 */

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
  if (!URL.canParse(url)) return undefined;
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
 * harmless headers; a POST never is, since its body is the caller's message.
 */
export function createRedirectGuard(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init = {}) => {
    if (typeof input !== "string") return fetch(input, { ...init, redirect: "manual" });
    let { url, options } = moveUserInfoToHeader(input, { ...init, redirect: "manual" });
    for (let hops = 0; ; hops++) {
      const response = await fetch(url, options);
      const location = REDIRECT_STATUSES.has(response.status) ? response.headers.get("location") : null;
      if (location === null) return response;
      await response.body?.cancel();
      if (hops === MAX_REDIRECTS) {
        throw new RedirectError(`it redirected more than ${MAX_REDIRECTS} times`, "Check the address.");
      }
      if (!URL.canParse(location, url)) {
        throw new RedirectError("it redirected to an address that is not a URL", "Check the address.");
      }
      const from = new URL(url);
      const to = new URL(location, url);
      options = redirectOptions(options, response.status, from, to);
      url = to.href;
    }
  };
}

/** `fetch` rejects `user:password@` in a URL, so it is sent as the equivalent header. */
function moveUserInfoToHeader(url: string, options: RequestInit): { url: string; options: RequestInit } {
  if (!url.includes("@") || !URL.canParse(url)) return { url, options };
  const parsed = new URL(url);
  if (parsed.username === "" && parsed.password === "") return { url, options };
  const pair = `${decodeURIComponent(parsed.username)}:${decodeURIComponent(parsed.password)}`;
  parsed.username = "";
  parsed.password = "";
  const headers = new Headers(options.headers);
  if (!headers.has("authorization")) headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
  return { url: parsed.href, options: { ...options, headers } };
}

function redirectOptions(options: RequestInit, status: number, from: URL, to: URL): RequestInit {
  const method = options.method ?? "GET";
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
  if (sameOrigin) return options;
  const headers: Record<string, string> = {};
  for (const [name, value] of new Headers(options.headers)) if (FORWARDED_HEADERS.has(name)) headers[name] = value;
  return { ...options, headers };
}
