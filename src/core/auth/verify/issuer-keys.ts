import type { CryptoKey, createLocalJWKSet, FlattenedJWSInput, JSONWebKeySet, JWSHeaderParameters } from "jose";
import { ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { canParseUrl } from "../../model/url.ts";
import { createGuardedFetch } from "../guarded-fetch/guarded-fetch.ts";

/** How the documents of an authorization server are requested. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;

class DocumentError extends Error {
  override readonly name = "DocumentError";
}

export async function fetchJson(fetch: Fetch, url: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new DocumentError(`${url} answered with HTTP status ${response.status}.`);
  }
  const value: unknown = JSON.parse(await readText(response, url));
  if (!isObject(value)) throw new DocumentError(`${url} is not a JSON object.`);
  return value;
}

async function readText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new DocumentError(`${url} is larger than ${MAX_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks, size));
}

/** Where OpenID Connect has an issuer's metadata (Discovery 1.0 §4). */
export function openIdConnectUrl(issuer: string): string {
  return `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`;
}

/** Where OAuth has it: the well-known part goes between host and path (RFC 8414 §3.1). */
function authorizationServerUrl(issuer: string): string {
  const { origin, pathname } = new URL(issuer);
  return `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/+$/, "")}`;
}

/** The address of an issuer's keys, as its metadata have it. */
export async function discoverJwksUrl(fetch: Fetch, issuer: string): Promise<string> {
  const metadata = await fetchJson(fetch, openIdConnectUrl(issuer)).catch((error: unknown) =>
    fetchJson(fetch, authorizationServerUrl(issuer)).catch(() => {
      throw error;
    }),
  );
  // Otherwise a server at that address could answer for another issuer (RFC 8414 §3.3).
  if (metadata.issuer !== issuer) {
    throw new DocumentError(`The metadata of ${issuer} are those of ${JSON.stringify(metadata.issuer)}.`);
  }
  const { jwks_uri: address } = metadata;
  if (typeof address !== "string" || !canParseUrl(address)) throw new DocumentError(`${issuer} names no keys.`);
  if (issuer.startsWith("https:") && !address.startsWith("https:")) {
    throw new DocumentError(
      `${issuer} serves its keys without TLS, so that anyone on the network path could replace them.`,
    );
  }
  return address;
}

/**
 * For the documents of an issuer. Hosts that the operator named may be anywhere; where an issuer's metadata point to,
 * only what is public may be reached besides.
 */
export function createIssuerFetch({ issuer, jwksUrl = issuer }: { issuer: string; jwksUrl?: string }): Fetch {
  return createGuardedFetch({ allow: [issuer, jwksUrl].map((url) => new URL(url).hostname) });
}

interface RemoteKeysOptions {
  /** Reads the key set, wherever it is. */
  readonly load: () => Promise<JSONWebKeySet>;
  readonly now: () => number;
  readonly log: Log;
}

/** Keys are read again after this time. */
const REFRESH_AFTER_MS = 600_000;
/** Keys that cannot be read again are used this long: an issuer that is down for an hour locks no one out. */
const MAX_STALE_MS = 86_400_000;
/** A token of an unknown key makes the set be read again, at most this often: anyone can invent key ids. */
const MIN_ROTATION_MS = 30_000;
/** After a failure the issuer is left alone for a moment. */
const RETRY_MS = 5_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** The public keys of an issuer, which change now and then. */
export class RemoteKeys {
  readonly #options: RemoteKeysOptions;
  #keys: { readonly set: KeySet; readonly readAt: number } | undefined;
  #loading: Promise<void> | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failed = false;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  /** Throws UNAVAILABLE when there are no keys to be had, and jose's own errors when none of them fits. */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    const set = await this.#current();
    try {
      return await set(header, token);
    } catch (error) {
      const { errors } = await import("jose");
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#may(MIN_ROTATION_MS)) throw error;
    }
    await this.#reload();
    return (await this.#current())(header, token);
  };

  async #current(): Promise<KeySet> {
    const age = this.#options.now() - (this.#keys?.readAt ?? Number.NEGATIVE_INFINITY);
    if (age > REFRESH_AFTER_MS && this.#may(this.#failed ? RETRY_MS : 0)) await this.#reload();
    const keys = this.#keys;
    if (keys === undefined || this.#options.now() - keys.readAt > MAX_STALE_MS) {
      throw new ProtocolError("UNAVAILABLE", "Tokens cannot be checked at the moment.", {
        retryAfter: RETRY_MS / 1000,
      });
    }
    return keys.set;
  }

  /** Callers that arrive while the keys are being read wait for them too. */
  #may(pauseMs: number): boolean {
    return this.#loading !== undefined || this.#options.now() - this.#triedAt >= pauseMs;
  }

  #reload(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    const { load, log, now } = this.#options;
    this.#triedAt = now();
    try {
      const { createLocalJWKSet } = await import("jose");
      const set = createLocalJWKSet(await load());
      this.#keys = { set, readAt: now() };
      this.#failed = false;
    } catch (error) {
      this.#failed = true;
      log.warn({ err: error }, "The keys by which tokens are checked could not be read.");
    }
  }
}
