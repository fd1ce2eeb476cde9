import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../model/caller.ts";
import type { JsonObject } from "../../model/json.ts";
import type { PeerCertificate } from "../../wire/tls.ts";
import {
  CredentialsError,
  isOwnerName,
  isPromise,
  type RequestCredentials,
  requireSameCaller,
  type TokenCheck,
  toCaller,
  type Verification,
  type Verifier,
} from "./contract.ts";

export interface ApiKeyEntry {
  readonly key: string;
  readonly owner: string;
  readonly scopes?: readonly string[];
}

/** Where keys are accepted in addition to `Authorization: Bearer`. */
export interface ApiKeyPlaces {
  /** Default: `X-API-Key`. */
  readonly header?: string;
  /** Default: not accepted in the query, since URLs end up in logs. */
  readonly query?: string;
  readonly cookie?: string;
}

const DEFAULT_HEADER = "X-API-Key";

/** Headers that HTTP, A2A or a proxy has given another meaning; a key among them would not be taken for one. */
const RESERVED_HEADER =
  /^(?:(?:accept|access-control|content|if|proxy|sec|x-forwarded)(?:-.*)?|a2a-.*|x-a2a-.*|authorization|cache-control|connection|cookie|date|expect|forwarded|from|host|http2-settings|idempotency-key|keep-alive|last-event-id|max-forwards|origin|range|referer|set-cookie|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|www-authenticate|x-real-ip)$/i;

/** Whether API keys are accepted in a header of that name. */
export function isKeyHeader(name: string): boolean {
  return !RESERVED_HEADER.test(name);
}

type ApiKeys = SecretMap<Caller>;

/** Several keys of one owner are valid at once, so that one can be replaced while the other is still in use. */
export function toApiKeys(entries: readonly ApiKeyEntry[]): ApiKeys {
  return new SecretMap(entries.map(({ key, owner, scopes }) => [key, toCaller(owner, scopes)]));
}

export function createApiKeyVerifier(keys: ApiKeys, places: ApiKeyPlaces = {}): Verifier {
  const { header = DEFAULT_HEADER, query, cookie } = places;
  const headerName = header.toLowerCase();
  const presentedKeys = ({ headers, query: asked }: RequestCredentials): readonly string[] => [
    ...(headers[headerName] === undefined ? [] : [headers[headerName]]),
    ...(query === undefined || asked === "" ? [] : new URLSearchParams(asked).getAll(query)),
    ...(cookie === undefined || headers.cookie === undefined ? [] : keysInCookies(headers.cookie, cookie)),
  ];
  return {
    perRequest: true,
    verify(presented) {
      let caller: Caller | undefined;
      for (const key of presentedKeys(presented)) {
        const found = keys.find(key);
        if (found === undefined) throw new CredentialsError("wrong", "The API key is not valid.");
        caller = requireSameCaller(caller, found);
      }
      return caller;
    },
    schemes: {
      apiKey: toApiKeyScheme("header", header),
      ...(query !== undefined && { apiKeyQuery: toApiKeyScheme("query", query) }),
      ...(cookie !== undefined && { apiKeyCookie: toApiKeyScheme("cookie", cookie) }),
    },
  };
}

function toApiKeyScheme(location: string, name: string): JsonObject {
  return { apiKeySecurityScheme: { location, name } };
}

function keysInCookies(cookies: string, name: string): readonly string[] {
  return cookies.split(";").flatMap((cookie) => {
    const equals = cookie.indexOf("=");
    if (equals <= 0 || cookie.slice(0, equals).trim() !== name) return [];
    const value = cookie.slice(equals + 1).trim();
    return [value.replace(/^"(.*)"$/, "$1")];
  });
}

/**
 * Secrets and whose they are. Only digests are stored, made with a key that lives as long as the process, and looking one
 * up takes the same time whichever it is and whether or not it is there.
 */
export class SecretMap<T> {
  readonly #key = randomBytes(32);
  readonly #entries: readonly { readonly digest: Buffer; readonly value: T }[];

  constructor(entries: readonly (readonly [secret: string, value: T])[]) {
    this.#entries = entries.map(([secret, value]) => ({ digest: this.#digest(secret), value }));
  }

  find(secret: string): T | undefined {
    const digest = this.#digest(secret);
    let found: T | undefined;
    for (const entry of this.#entries) if (timingSafeEqual(entry.digest, digest)) found = entry.value;
    return found;
  }

  #digest(secret: string): Buffer {
    return createHmac("sha256", this.#key).update(secret).digest();
  }
}

export interface BasicEntry {
  /** Without a colon (RFC 7617 §2). */
  readonly user: string;
  readonly password: string;
  /** Default: the user name. */
  readonly owner?: string;
  readonly scopes?: readonly string[];
}

const BASIC_AUTHORIZATION = /^basic +([A-Za-z0-9+/_-]*={0,2}) *$/i;

/** User and password, which travel with every request: for use over TLS. */
export function createBasicVerifier(entries: readonly BasicEntry[]): Verifier {
  const logins = new SecretMap(
    entries.map(({ user, password, owner = user, scopes }) => [`${user}:${password}`, toCaller(owner, scopes)]),
  );
  return {
    perRequest: true,
    verify({ headers: { authorization } }) {
      if (authorization === undefined || !/^basic(?: |$)/i.test(authorization)) return undefined;
      const encoded = BASIC_AUTHORIZATION.exec(authorization)?.[1];
      const caller = encoded === undefined ? undefined : logins.find(Buffer.from(encoded, "base64").toString("utf8"));
      if (caller === undefined) throw new CredentialsError("wrong", "User or password is not valid.");
      return caller;
    },
    schemes: { basic: { httpAuthSecurityScheme: { scheme: "Basic" } } },
    challenge: { scheme: "Basic", parameters: { charset: "UTF-8" } },
  };
}

/** Tokens of several kinds after one word: the first kind that knows a token decides. */
export function createBearerVerifier(
  checks: readonly TokenCheck[],
  schemes: Readonly<Record<string, JsonObject>>,
): Verifier {
  const checkFrom = (token: string, address: string | undefined, first: number): Verification => {
    for (let at = first; at < checks.length; at++) {
      const found = checks[at]?.(token, address);
      if (isPromise(found)) return found.then((caller) => caller ?? checkFrom(token, address, at + 1));
      if (found !== undefined) return found;
    }
    throw new CredentialsError("wrong-token", "The token is not valid.");
  };
  return {
    perRequest: true,
    verify({ headers: { authorization }, remoteAddress }) {
      if (authorization === undefined || !/^bearer(?: |$)/i.test(authorization)) return undefined;
      return checkFrom(authorization.slice("bearer".length).trim(), remoteAddress, 0);
    },
    schemes,
    challenge: { scheme: "Bearer" },
  };
}

/** The names in a certificate that can identify its holder. */
export const CERTIFICATE_NAMES = ["uri", "email", "dns", "cn"] as const;
export type CertificateName = (typeof CERTIFICATE_NAMES)[number];

const NAME_READERS = {
  uri: ({ uris }) => uris[0],
  email: ({ emails }) => emails[0],
  dns: ({ dnsNames }) => dnsNames[0],
  cn: ({ commonName }) => commonName,
} as const satisfies Record<CertificateName, (certificate: PeerCertificate) => string | undefined>;

/**
 * Certificates that were verified when the connection was made. `name` is where the owner is read from; by default the
 * first of all there is, so that a certificate with an identity of its own is not known by its common name.
 */
export function createCertificateVerifier(name: CertificateName | undefined, now: () => number): Verifier {
  const names = name === undefined ? CERTIFICATE_NAMES : [name];
  return {
    verify({ certificate }) {
      if (certificate === undefined) return undefined;
      if (!certificate.verified) throw new CredentialsError("wrong", "The client certificate is not trusted here.");
      if (!(certificate.expires > now())) throw new CredentialsError("wrong", "The client certificate has expired.");
      const owner = names.map((one) => NAME_READERS[one](certificate)).find((found) => found !== undefined);
      if (!isOwnerName(owner)) throw new CredentialsError("wrong", "The client certificate does not name an owner.");
      return { ...toCaller(owner, undefined), expires: certificate.expires };
    },
    schemes: { mtls: { mtlsSecurityScheme: {} } },
    challenge: { scheme: "ClientCertificate" },
  };
}
