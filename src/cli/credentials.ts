import { BINDING } from "../dialects/xiaoyi-http/version.ts";
import type { AgentCard } from "../model/card.ts";
import type { JsonObject } from "../model/json.ts";
import type { Settings } from "./read-settings.ts";

export interface Credentials {
  readonly headers: Record<string, string>;
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Worth telling the user: a credential goes somewhere the card does not mention. */
  readonly notes: readonly string[];
}

/** Attach what the user gave where the card says it belongs: A2A sections 4.5 and 7.3. */
export function attachCredentials(card: AgentCard, settings: Pick<Settings, "bearer" | "apiKey">): Credentials {
  const headers: Record<string, string> = {};
  const query: [string, string][] = [];
  const notes: string[] = [];
  const schemes = requiredFirst(card);
  if (settings.bearer !== undefined) {
    headers.Authorization = `Bearer ${settings.bearer}`;
    if (!schemes.some(takesBearer))
      notes.push("The card declares no scheme that takes a bearer token; it is sent as Authorization.");
  }
  if (settings.apiKey !== undefined) {
    const place = schemes.map(apiKeyPlace).find((found) => found !== undefined);
    if (place === undefined) {
      headers["X-API-Key"] = settings.apiKey;
      notes.push("The card declares no scheme that takes an API key; it is sent as X-API-Key.");
    } else if (place.location === "query") query.push([place.name, settings.apiKey]);
    else if (place.location === "cookie") headers.Cookie = `${place.name}=${encodeURIComponent(settings.apiKey)}`;
    else headers[place.name] = settings.apiKey;
  }
  return { headers, query, notes };
}

/**
 * The schemes of the card, those it requires before those it merely describes. By name otherwise: the order of members
 * is not part of what is signed.
 */
function requiredFirst(card: AgentCard): JsonObject[] {
  const all = card.securitySchemes ?? {};
  const required = (card.securityRequirements ?? []).flatMap(({ schemes }) => Object.keys(schemes).sort());
  const names = new Set([...required, ...Object.keys(all).sort()]);
  return [...names].flatMap((name) => (Object.hasOwn(all, name) ? [all[name] ?? {}] : []));
}

function takesBearer(scheme: JsonObject): boolean {
  if ("oauth2SecurityScheme" in scheme || "openIdConnectSecurityScheme" in scheme) return true;
  return text(member(scheme, "httpAuthSecurityScheme"), "scheme")?.toLowerCase() === "bearer";
}

function apiKeyPlace(scheme: JsonObject): { readonly location: string; readonly name: string } | undefined {
  const details = member(scheme, "apiKeySecurityScheme");
  const name = text(details, "name");
  return name === undefined ? undefined : { location: text(details, "location") ?? "header", name };
}

function member(value: JsonObject, name: string): JsonObject | undefined {
  const found = value[name];
  return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as JsonObject) : undefined;
}

function text(value: JsonObject | undefined, name: string): string | undefined {
  const found = value?.[name];
  return typeof found === "string" && found !== "" ? found : undefined;
}

/** Which flags would satisfy the card, for a hint. */
export function credentialHint(card: AgentCard): string | null {
  if (card.supportedInterfaces.some(({ protocolBinding }) => protocolBinding === BINDING))
    return "Set A2ACLI_ACCESS_KEY and A2ACLI_SECRET_KEY to sign requests, or A2ACLI_BEARER for an API key.";
  const schemes = requiredFirst(card);
  const ways: string[] = [];
  if (schemes.some(takesBearer)) ways.push("a bearer token in A2ACLI_BEARER (or --bearer)");
  if (schemes.some((scheme) => apiKeyPlace(scheme) !== undefined))
    ways.push("an API key in A2ACLI_API_KEY (or --api-key)");
  return ways.length === 0 ? "Set A2ACLI_BEARER or A2ACLI_API_KEY." : `The agent's card asks for ${ways.join(" or ")}.`;
}

/** A fetch that adds query credentials, to the agent's own origin and nowhere else. */
export function fetchWithQuery(
  query: Credentials["query"],
  origin: string,
  inner: typeof globalThis.fetch = globalThis.fetch,
): typeof globalThis.fetch {
  return (input, init) => {
    if (input instanceof Request) return inner(input, init);
    const url = new URL(input);
    if (url.origin === origin) for (const [name, value] of query) url.searchParams.set(name, value);
    return inner(url, init);
  };
}
