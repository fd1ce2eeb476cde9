import type { Caller } from "../model/caller.ts";
import type { JsonObject } from "../model/json.ts";
import { CredentialsError, type Presented, type TokenCheck, toCaller, type Verifier } from "./contract.ts";
import { Secrets } from "./secrets.ts";

export interface ApiKeyEntry {
  readonly key: string;
  readonly owner: string;
  readonly scopes?: readonly string[];
}

/** Where keys may stand besides `Authorization: Bearer`. */
export interface ApiKeyPlaces {
  /** `X-API-Key` unless given. */
  readonly header?: string;
  /** Nowhere in the query unless given: addresses end up in logs. */
  readonly query?: string;
  readonly cookie?: string;
}

const DEFAULT_HEADER = "X-API-Key";

/** Headers that HTTP, A2A or a proxy has given another meaning; a key among them would not be taken for one. */
const OTHER_MEANING =
  /^(?:(?:accept|access-control|content|if|proxy|sec|x-forwarded)(?:-.*)?|a2a-.*|x-a2a-.*|authorization|cache-control|connection|cookie|date|expect|forwarded|from|host|http2-settings|idempotency-key|keep-alive|last-event-id|max-forwards|origin|range|referer|set-cookie|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|www-authenticate|x-real-ip)$/i;

/** Whether API keys may stand in a header of that name. */
export function isKeyHeader(name: string): boolean {
  return !OTHER_MEANING.test(name);
}

export type ApiKeys = Secrets<Caller>;

/** Several keys of one owner are valid at once, so that one can be replaced while the other is still in use. */
export function toApiKeys(entries: readonly ApiKeyEntry[]): ApiKeys {
  return new Secrets(entries.map(({ key, owner, scopes }) => [key, toCaller(owner, scopes)]));
}

export function createApiKeyVerifier(keys: ApiKeys, places: ApiKeyPlaces = {}): Verifier {
  const { header = DEFAULT_HEADER, query, cookie } = places;
  const headerName = header.toLowerCase();
  const presentedKey = ({ headers, query: asked }: Presented): string | undefined =>
    headers[headerName] ??
    (query === undefined ? undefined : keyInQuery(asked, query)) ??
    (cookie === undefined ? undefined : keyInCookies(headers.cookie, cookie));
  return {
    verify(presented) {
      const key = presentedKey(presented);
      if (key === undefined) return undefined;
      const caller = keys.find(key);
      if (caller === undefined) throw new CredentialsError("wrong", "The API key is not valid.");
      return caller;
    },
    schemes: {
      apiKey: scheme("header", header),
      ...(query !== undefined && { apiKeyQuery: scheme("query", query) }),
      ...(cookie !== undefined && { apiKeyCookie: scheme("cookie", cookie) }),
    },
  };
}

/** Keys also stand where tokens do. */
export function apiKeyTokens(keys: ApiKeys): TokenCheck {
  return { check: (token) => keys.find(token) };
}

function scheme(location: string, name: string): JsonObject {
  return { apiKeySecurityScheme: { location, name } };
}

function keyInQuery(query: string, name: string): string | undefined {
  return query === "" ? undefined : (new URLSearchParams(query).get(name) ?? undefined);
}

function keyInCookies(cookies: string | undefined, name: string): string | undefined {
  for (const cookie of cookies?.split(";") ?? []) {
    const equals = cookie.indexOf("=");
    if (equals > 0 && cookie.slice(0, equals).trim() === name) {
      return cookie
        .slice(equals + 1)
        .trim()
        .replace(/^"(.*)"$/, "$1");
    }
  }
  return undefined;
}
