import type { Caller } from "../model/caller.ts";
import type { JsonObject } from "../model/json.ts";
import { agreeing, CredentialsError, type Presented, type TokenCheck, toCaller, type Verifier } from "./contract.ts";
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
  const presentedKeys = ({ headers, query: asked }: Presented): readonly string[] => [
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
        caller = agreeing(caller, found);
      }
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

function keysInCookies(cookies: string, name: string): readonly string[] {
  return cookies.split(";").flatMap((cookie) => {
    const equals = cookie.indexOf("=");
    if (equals <= 0 || cookie.slice(0, equals).trim() !== name) return [];
    const value = cookie.slice(equals + 1).trim();
    return [value.replace(/^"(.*)"$/, "$1")];
  });
}
