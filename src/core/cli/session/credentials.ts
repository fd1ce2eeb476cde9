import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { AgentCredentials, CredentialProvider, CredentialVault } from "../../auth/login/contract.ts";
import { createFileVault } from "../../auth/login/file-vault.ts";
import { chooseStoredSchemes, isOfSameIssuer, readScheme } from "../../auth/login/security-schemes.ts";
import { createStoredProvider } from "../../auth/login/stored-credentials.ts";
import { locateCard } from "../../client/card/addresses.ts";
import { findBinding } from "../../client/dialects.ts";
import { createCredentialGate } from "../../client/transport/credential-origins.ts";
import { parseGrpcAddress } from "../../client/transport/grpc-channels.ts";
import type { AgentCard } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import { isLoopback } from "../../wire/loopback.ts";
import type { Output } from "../output.ts";
import { flagName } from "../settings/definitions.ts";
import type { Settings } from "../settings/read.ts";
import { canonicalBinding } from "./choose-interfaces.ts";

/** XDG base directories: state persists across restarts but is not portable to other machines. */
export function credentialFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  home: string = homedir(),
): string {
  const { LOCALAPPDATA: windows, XDG_STATE_HOME: xdg } = environment;
  const fallback = process.platform === "win32" && windows ? windows : join(home, ".local", "state");
  return join(xdg !== undefined && isAbsolute(xdg) ? xdg : fallback, "dragoman", "credentials");
}

export function openVault(output: Output): CredentialVault {
  return createFileVault({
    folder: credentialFolder(),
    onExposed: (path) =>
      output.warn(`Others could read ${path}; its permissions are restricted now. Consider logging in again.`),
  });
}

/**
 * The URL under which an agent's credentials are stored: one host may serve agents of different people, so it is that of
 * the agent, from its card, or from its first interface for a file.
 */
export function agentUrl(cardUrl: string | undefined, card: AgentCard): string | undefined {
  if (cardUrl !== undefined && /^https?:/i.test(cardUrl)) return withoutCardPath(cardUrl);
  const [first] = card.supportedInterfaces;
  if (first === undefined) return undefined;
  if (/^https?:/i.test(first.url) && canParseUrl(first.url)) return withoutCardPath(first.url);
  const address = parseGrpcAddress(first.url);
  return address && new URL(`${address.secure ? "https" : "http"}://${address.authority}`).origin;
}

/** The same from the command line argument, if it contains the URL. */
export function agentUrlOfTarget(target: string): string | undefined {
  const place = locateCard(target);
  return place.kind === "web" ? withoutCardPath(place.urls[0]) : undefined;
}

/** `https://host/agents/one` for each of its usual cards; `https://host` for those of the host itself. */
function withoutCardPath(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname.replace(/\/\.well-known\/agent(?:-card)?\.json$/, "").replace(/\/+$/, "")}${search}`;
}

/** Origins of the card's interfaces to which credentials are not sent. */
export function untrustedOrigins(card: AgentCard, cardUrl: string, allowed: readonly string[] = []): readonly string[] {
  const mayHaveCredentials = createCredentialGate({ cardUrl, credentialOrigins: allowed });
  const others = new Set<string>();
  for (const { protocolBinding, url } of card.supportedInterfaces) {
    const isGrpc = canonicalBinding(protocolBinding) === "GRPC";
    const address = isGrpc ? parseGrpcAddress(url, { cardUrl }) : undefined;
    const target = address === undefined ? url : `${address.secure ? "https" : "http"}://${address.authority}`;
    if (canParseUrl(target) && !mayHaveCredentials({ url, address })) others.add(new URL(target).origin);
  }
  return [...others];
}

export function isLoopbackOrigin(url: string): boolean {
  return canParseUrl(url) && isLoopback(new URL(url).hostname);
}

export interface StoredLogin {
  readonly provider: CredentialProvider;
  readonly schemes: readonly string[];
  /** Origins besides the card's that were allowed at login. */
  readonly origins: readonly string[];
}

/** Undefined if no stored credential fits the agent. Without a card, all credentials of the agent fit. */
export async function loadStoredLogin(
  output: Output,
  agent: string | undefined,
  card: AgentCard | undefined,
): Promise<StoredLogin | undefined> {
  if (agent === undefined) return undefined;
  const vault = openVault(output);
  const known: AgentCredentials | undefined = await vault.read(agent);
  const names = new Set(Object.keys(known?.schemes ?? {}).filter((name) => fitsScheme(known, name, card)));
  const schemes = card === undefined ? [...names] : chooseStoredSchemes(card, names);
  const own = known !== undefined && schemes.length > 0 ? { known, schemes, origins: known.origins } : undefined;
  const found = own ?? (card && findSharedLogin(await vault.list(), agent, card));
  if (found === undefined) return undefined;
  const provider = createStoredProvider({
    vault,
    known: found.known,
    schemes: found.schemes,
    now: Date.now,
    allowLoopback: isLoopbackOrigin(agent),
    onSecret: (secret) => output.addSecret(secret),
  });
  // The file may have been edited by hand: entries that are not origins are ignored.
  const origins = found.origins.filter((text) => canParseUrl(text) && /^https?:/i.test(text));
  return { provider, schemes: found.schemes, origins };
}

/** A login for another agent of the origin that may be used for this one: the user said so, and the issuer is the same. */
function findSharedLogin(all: readonly AgentCredentials[], agent: string, card: AgentCard) {
  const { origin } = new URL(agent);
  for (const known of all) {
    if (known.shared !== true || !canParseUrl(known.agent) || new URL(known.agent).origin !== origin) continue;
    const stored = Object.entries(known.schemes);
    // By the names in this card, which may be others.
    const byName = new Map(
      Object.entries(card.securitySchemes ?? {}).flatMap(([name, declared]) => {
        const scheme = readScheme(declared);
        const same = stored.find(([, credential]) => credential.kind === "oauth" && isOfSameIssuer(scheme, credential));
        return same === undefined ? [] : [[name, same[0]] as const];
      }),
    );
    const schemes = chooseStoredSchemes(card, new Set(byName.keys())).flatMap((name) => byName.get(name) ?? []);
    if (schemes.length > 0) return { known, schemes: [...new Set(schemes)], origins: [] };
  }
  return undefined;
}

/** A scheme of the same name may have become one of another kind since the login. */
function fitsScheme(known: AgentCredentials | undefined, name: string, card: AgentCard | undefined): boolean {
  const declared = card?.securitySchemes?.[name];
  if (declared === undefined) return true;
  const { kind } = readScheme(declared);
  const stored = known?.schemes[name]?.kind;
  if (stored === "oauth" || stored === "bearer") return acceptsBearer(declared);
  return stored === kind;
}

export interface Credentials {
  readonly headers: Record<string, string>;
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Messages for the user: a credential is sent in a place that the card does not mention. */
  readonly notes: readonly string[];
}

/** Attaches the user's credentials as the card's schemes specify: A2A sections 4.5 and 7.3. */
export function attachCredentials(card: AgentCard, settings: Pick<Settings, "bearer" | "apiKey">): Credentials {
  const headers: Record<string, string> = {};
  const query: [string, string][] = [];
  const notes: string[] = [];
  const schemes = orderSchemes(card);
  if (settings.bearer !== undefined) {
    headers.Authorization = `Bearer ${settings.bearer}`;
    if (!schemes.some(acceptsBearer))
      notes.push("The card declares no scheme that takes a bearer token; it is sent as Authorization.");
  }
  if (settings.apiKey !== undefined) {
    const place = schemes.map(findApiKeyLocation).find((found) => found !== undefined);
    if (place === undefined) {
      headers["X-API-Key"] = settings.apiKey;
      notes.push("The card declares no scheme that takes an API key; it is sent as X-API-Key.");
    } else if (place.location === "query") query.push([place.parameter, settings.apiKey]);
    else if (place.location === "cookie") headers.Cookie = `${place.parameter}=${encodeURIComponent(settings.apiKey)}`;
    else headers[place.parameter] = settings.apiKey;
  }
  return { headers, query, notes };
}

type CallerCredentials = Pick<Settings, "bearer" | "apiKey" | "svcParam">;

interface DeclaredCredentials<T> {
  readonly settings: T;
  /** Flags whose credentials are left out. */
  readonly withheld: readonly string[];
  /** A credential is left. */
  readonly hasAny: boolean;
}

/**
 * The settings without the credentials that no scheme of the card accepts: the endpoint of the extended card must not
 * see them (a2a-cli specification, section 12.4).
 */
export function keepDeclaredCredentials<T extends CallerCredentials>(
  card: AgentCard,
  settings: T,
): DeclaredCredentials<T> {
  const schemes = orderSchemes(card);
  const isAccepted = {
    bearer: schemes.some(acceptsBearer),
    apiKey: schemes.some((scheme) => findApiKeyLocation(scheme) !== undefined),
  };
  const names = (["bearer", "apiKey"] as const).filter((name) => settings[name] !== undefined);
  const secretParameters = settings.svcParam.filter(([name]) => isCredentialName(name));
  const undeclared = secretParameters.filter(([name]) => !schemes.some(acceptsHeader(name)));
  return {
    settings: {
      ...settings,
      bearer: isAccepted.bearer ? settings.bearer : undefined,
      apiKey: isAccepted.apiKey ? settings.apiKey : undefined,
      svcParam: settings.svcParam.filter((parameter) => !undeclared.includes(parameter)),
    },
    withheld: [
      ...names.filter((name) => !isAccepted[name]).map(flagName),
      ...undeclared.map(([name]) => `${flagName("svcParam")} ${name}`),
    ],
    hasAny: names.some((name) => isAccepted[name]) || undeclared.length < secretParameters.length,
  };
}

/** Service parameters that may identify the caller. */
export function isCredentialName(name: string): boolean {
  return /auth|key|token|cookie|secret/i.test(name);
}

function acceptsHeader(name: string): (scheme: JsonObject) => boolean {
  const wanted = name.toLowerCase();
  return (declared) => {
    const scheme = readScheme(declared);
    if (wanted === "authorization") return scheme.kind === "basic" || acceptsBearer(declared);
    if (scheme.kind !== "api-key") return false;
    return scheme.location === "cookie" ? wanted === "cookie" : scheme.parameter.toLowerCase() === wanted;
  };
}

/**
 * The schemes of the card, required ones before those that are only declared. Otherwise sorted by name: the signature
 * does not cover the order of members.
 */
function orderSchemes(card: AgentCard): JsonObject[] {
  const all = card.securitySchemes ?? {};
  const required = (card.securityRequirements ?? []).flatMap(({ schemes }) => Object.keys(schemes).sort());
  const names = new Set([...required, ...Object.keys(all).sort()]);
  return [...names].flatMap((name) => (Object.hasOwn(all, name) ? [all[name] ?? {}] : []));
}

function acceptsBearer(scheme: JsonObject): boolean {
  return (
    "oauth2SecurityScheme" in scheme || "openIdConnectSecurityScheme" in scheme || readScheme(scheme).kind === "bearer"
  );
}

function findApiKeyLocation(declared: JsonObject) {
  const scheme = readScheme(declared);
  return scheme.kind === "api-key" ? scheme : undefined;
}

/** A hint that lists the flags which would satisfy the card. */
export function credentialHint(card: AgentCard): string | null {
  const hints = card.supportedInterfaces.flatMap(({ protocolBinding, protocolVersion }) => {
    return findBinding(protocolBinding, protocolVersion)?.dialect.credentialHint ?? [];
  });
  if (hints[0] !== undefined) return hints[0];
  const schemes = orderSchemes(card);
  const ways: string[] = [];
  if (schemes.some(acceptsBearer)) ways.push("a bearer token in A2ACLI_BEARER (or --bearer)");
  if (schemes.some((scheme) => findApiKeyLocation(scheme) !== undefined))
    ways.push("an API key in A2ACLI_API_KEY (or --api-key)");
  if (asksForCertificate(card)) ways.push("a client certificate (--client-cert and --client-key)");
  return ways.length === 0 ? "Set A2ACLI_BEARER or A2ACLI_API_KEY." : `The agent's card asks for ${ways.join(" or ")}.`;
}

export function asksForCertificate(card: AgentCard): boolean {
  return orderSchemes(card).some((scheme) => "mtlsSecurityScheme" in scheme);
}

/** Whether the settings contain anything that may identify the caller. */
export function hasCredentials(settings: Settings): boolean {
  const { apiKey, authCode, bearer, clientCert, keys, svcParam } = settings;
  return (bearer ?? apiKey ?? keys ?? authCode ?? clientCert) !== undefined || svcParam.length > 0;
}

/** A fetch that adds query credentials to requests to the agent's own origin only. */
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
