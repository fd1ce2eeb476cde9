/** Reads a card's security schemes (A2A 1.0, section 4.5). Cards of earlier dialects are decoded to the same form. */

import type { AgentCard } from "../../model/card.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import { type ApiKeyScheme, GRANTS, type Grant, KEY_LOCATIONS, LoginError, type OAuthCredential } from "./contract.ts";

/** Which of the agent's security schemes to use. */
interface LoginPreference {
  /** A scheme of the card by its name. */
  readonly scheme?: string | undefined;
  readonly grant?: Grant | undefined;
  /** Kinds for which the caller already has the credentials; these are preferred. */
  readonly prepared?: readonly Scheme["kind"][];
}

/** The schemes to log in for; the agent requires all of them together. */
export function chooseLogin(card: AgentCard, wish: LoginPreference = {}): SchemeSet {
  const ways = acceptedSchemeSets(card);
  if (ways.length === 0) throw new LoginError("unsupported", "The agent's card requires no credentials.");
  if (wish.scheme !== undefined) return [findNamedScheme(card, ways, wish.scheme, wish.grant)];
  const possible = ways.filter((way) => way.every(({ scheme }) => unsupportedReason(scheme, wish.grant) === undefined));
  const prepared = possible.find((way) => way.every(({ scheme }) => wish.prepared?.includes(scheme.kind) === true));
  const chosen = prepared ?? possible[0];
  if (chosen !== undefined) return chosen;
  throw new LoginError(
    "unsupported",
    `None of the agent's security schemes is supported: ${explainUnsupported(ways, wish.grant)}.`,
  );
}

/** The schemes among `known` that together satisfy the card; failing that, all of them that the card describes. */
export function chooseStoredSchemes(card: AgentCard, known: ReadonlySet<string>): readonly string[] {
  const way = acceptedSchemeSets(card).find((candidate) => candidate.every(({ name }) => known.has(name)));
  if (way !== undefined) return way.map(({ name }) => name);
  return Object.keys(card.securitySchemes ?? {}).filter((name) => known.has(name));
}

const WELL_KNOWN = /\/\.well-known\/(?:openid-configuration|oauth-authorization-server)/;

/** The scheme is about tokens of the server that issued these. */
export function isOfSameIssuer(scheme: Scheme, { issuer, tokenEndpoint }: OAuthCredential): boolean {
  if (scheme.kind !== "oauth2" && scheme.kind !== "openid") return false;
  const metadataUrl = scheme.kind === "openid" ? scheme.discoveryUrl : scheme.metadataUrl;
  if (metadataUrl === undefined) return scheme.kind === "oauth2" && scheme.tokenUrl === tokenEndpoint;
  return withoutSlash(metadataUrl.replace(WELL_KNOWN, "")) === withoutSlash(issuer);
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, "");

function findNamedScheme(
  card: AgentCard,
  ways: readonly SchemeSet[],
  name: string,
  grant: Grant | undefined,
): NamedScheme {
  // Required schemes first, then any that is described: a scheme may apply to some skills only.
  const described = acceptedSchemeSets({ ...card, securityRequirements: [] });
  const found = [...ways, ...described].flat().find((one) => one.name === name);
  if (found === undefined) {
    const known = Object.keys(card.securitySchemes ?? {}).join(", ") || "none";
    throw new LoginError("unknown-scheme", `The agent's card has no security scheme ${name}; it has ${known}.`);
  }
  const reason = unsupportedReason(found.scheme, grant);
  if (reason !== undefined) throw new LoginError("unsupported", `The scheme ${name} cannot be used: ${reason}.`);
  return found;
}

function unsupportedReason(scheme: Scheme, grant: Grant | undefined): string | undefined {
  if (scheme.kind === "unsupported") return scheme.reason;
  if (grant === undefined || scheme.kind === "openid") return undefined;
  if (scheme.kind !== "oauth2") return "it has no OAuth flow";
  // The server's own metadata may list flows that the card does not.
  return scheme.grant === grant || scheme.metadataUrl !== undefined ? undefined : `its flow is ${scheme.grant}`;
}

function explainUnsupported(ways: readonly SchemeSet[], grant: Grant | undefined): string {
  const reasons = ways.flat().flatMap(({ name, scheme }) => {
    const reason = unsupportedReason(scheme, grant);
    return reason === undefined ? [] : [`${name}: ${reason}`];
  });
  return [...new Set(reasons)].join("; ");
}

export interface OAuthScheme {
  readonly kind: "oauth2";
  readonly grant: Grant;
  readonly authorizationUrl?: string | undefined;
  readonly deviceAuthorizationUrl?: string | undefined;
  readonly tokenUrl?: string | undefined;
  readonly metadataUrl?: string | undefined;
  /** Scopes that the scheme defines. */
  readonly scopes: readonly string[];
}

export interface OpenIdScheme {
  readonly kind: "openid";
  readonly discoveryUrl: string;
}

export type Scheme =
  | ApiKeyScheme
  | { readonly kind: "bearer" }
  | { readonly kind: "basic" }
  | OAuthScheme
  | OpenIdScheme
  | { readonly kind: "unsupported"; readonly reason: string };

/** A scheme of a card, and the scopes that its token must have. */
export interface NamedScheme {
  readonly name: string;
  readonly scheme: Scheme;
  readonly scopes: readonly string[];
}

/** Schemes that have to be satisfied together. */
type SchemeSet = readonly NamedScheme[];

/** The alternatives that a card accepts, in its order. If it requires nothing, each scheme it describes is an alternative. */
export function acceptedSchemeSets({ securityRequirements, securitySchemes }: AgentCard): readonly SchemeSet[] {
  const schemes = securitySchemes ?? {};
  const named = (name: string, scopes: readonly string[]): NamedScheme => {
    const declared = Object.hasOwn(schemes, name) ? schemes[name] : undefined;
    const scheme = declared === undefined ? unsupported("the card does not describe it") : readScheme(declared);
    return { name, scheme, scopes };
  };
  const required = (securityRequirements ?? []).map((requirement) =>
    Object.entries(requirement.schemes).map(([name, { list }]) => named(name, list)),
  );
  const ways = required.filter((way) => way.length > 0);
  return ways.length > 0 ? ways : Object.keys(schemes).map((name) => [named(name, [])]);
}

/** Whether the card also accepts anonymous callers. */
export function allowsAnonymous({ securityRequirements }: AgentCard): boolean {
  const requirements = securityRequirements ?? [];
  return requirements.length === 0 || requirements.some(({ schemes }) => Object.keys(schemes).length === 0);
}

export function readScheme(scheme: JsonObject): Scheme {
  for (const [member, read] of Object.entries(SCHEME_READERS)) {
    const declared = objectIn(scheme, member);
    if (declared !== undefined) return read(declared);
  }
  return unsupported("mtlsSecurityScheme" in scheme ? "it requires a client certificate" : "its type is unknown");
}

const FIELD_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** A key under one of these names would change the meaning of the request. */
const RESERVED_HEADERS = new Set([
  "host",
  "content-length",
  "content-type",
  "transfer-encoding",
  "connection",
  "upgrade",
  "te",
]);

function readApiKey(apiKey: JsonObject): Scheme {
  const parameter = stringIn(apiKey, "name");
  const place = stringIn(apiKey, "location")?.toLowerCase() ?? "header";
  const location = KEY_LOCATIONS.find((known) => known === place);
  if (parameter === undefined) return unsupported("it does not name the key");
  if (location === undefined) return unsupported(`its key has an unknown location, ${JSON.stringify(place)}`);
  const isReserved = location === "header" && RESERVED_HEADERS.has(parameter.toLowerCase());
  return location === "query" || (FIELD_NAME.test(parameter) && !isReserved)
    ? { kind: "api-key", location, parameter }
    : unsupported(`no ${location} can be called ${JSON.stringify(parameter)}`);
}

function readHttp(http: JsonObject): Scheme {
  const word = stringIn(http, "scheme")?.toLowerCase() ?? "";
  if (word === "bearer" || word === "basic") return { kind: word };
  return unsupported(`its HTTP authentication scheme is unknown: ${JSON.stringify(word)}`);
}

function readOpenId(openId: JsonObject): Scheme {
  const discoveryUrl = urlIn(openId, "openIdConnectUrl");
  return discoveryUrl === undefined ? unsupported("it names no OpenID provider") : { kind: "openid", discoveryUrl };
}

const FLOWS = {
  "authorization-code": "authorizationCode",
  "device-code": "deviceCode",
  "client-credentials": "clientCredentials",
} as const satisfies Record<Grant, string>;

function readOAuth(oauth2: JsonObject): Scheme {
  const flows = objectIn(oauth2, "flows") ?? {};
  const metadataUrl = urlIn(oauth2, "oauth2MetadataUrl");
  for (const grant of GRANTS) {
    const flow = objectIn(flows, FLOWS[grant]);
    if (flow === undefined) continue;
    const tokenUrl = urlIn(flow, "tokenUrl");
    if (tokenUrl === undefined && metadataUrl === undefined) return unsupported("it has no token URL");
    return {
      kind: "oauth2",
      grant,
      scopes: Object.keys(objectIn(flow, "scopes") ?? {}),
      authorizationUrl: urlIn(flow, "authorizationUrl"),
      deviceAuthorizationUrl: urlIn(flow, "deviceAuthorizationUrl"),
      tokenUrl,
      metadataUrl,
    };
  }
  const [other] = Object.keys(flows);
  // Omitted from OAuth 2.1: both pass tokens or passwords to parties that should not have them.
  if (other !== undefined) return unsupported(`the OAuth flow ${JSON.stringify(other)} is not safe to use`);
  if (metadataUrl === undefined) return unsupported("it names no OAuth flow");
  return { kind: "oauth2", grant: "authorization-code", scopes: [], metadataUrl };
}

const SCHEME_READERS: Readonly<Record<string, (declared: JsonObject) => Scheme>> = {
  apiKeySecurityScheme: readApiKey,
  httpAuthSecurityScheme: readHttp,
  oauth2SecurityScheme: readOAuth,
  openIdConnectSecurityScheme: readOpenId,
};

function unsupported(reason: string): Scheme {
  return { kind: "unsupported", reason };
}

function objectIn(value: JsonObject, name: string): JsonObject | undefined {
  const found = Object.hasOwn(value, name) ? value[name] : undefined;
  return isObject(found) ? found : undefined;
}

function stringIn(value: JsonObject, name: string): string | undefined {
  const found = Object.hasOwn(value, name) ? value[name] : undefined;
  return typeof found === "string" && found !== "" ? found : undefined;
}

function urlIn(value: JsonObject, name: string): string | undefined {
  const found = stringIn(value, name);
  return found !== undefined && canParseUrl(found) && /^https?:$/.test(new URL(found).protocol) ? found : undefined;
}
