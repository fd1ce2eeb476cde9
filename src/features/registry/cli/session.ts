/** Which agent `-a` means if it names a skill or an agent of a registry. */

import { existsSync, statSync } from "node:fs";
import { withoutCertificate } from "../../../core/auth/login/client-certificate.ts";
import { CommandError } from "../../../core/cli/errors.ts";
import { createExchangeLog, readTlsOptions, readTrustOptions } from "../../../core/cli/session/connect-options.ts";
import { loadStoredLogin } from "../../../core/cli/session/credentials.ts";
import type { Session } from "../../../core/cli/session/session.ts";
import type { Settings } from "../../../core/cli/settings/read.ts";
import type { FetchedCard } from "../../../core/client/card/fetch-card.ts";
import { ConnectionError, failedBeforeSending, redactUrl } from "../../../core/client/errors.ts";
import { parseReference, type RegistryReference } from "../../../core/client/reference.ts";
import { describeImpostor, listedIdentity } from "../../../core/client/registry-identity.ts";
import { createCredentialGate } from "../../../core/client/transport/credential-origins.ts";
import type { SessionParts } from "../../../core/extension/contract.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import { type RegistryClient, type RegistryEntry, RegistryError, type RegistryOptions } from "../client/types.ts";

/** Where a server of this product listens by default. */
const USUAL_REGISTRY = "http://127.0.0.1:4000";

export interface NamedRegistry {
  readonly url: string;
  /** By a flag, variable or file; otherwise it is the one of this machine, if it answers. */
  readonly isGiven: boolean;
}

/** The registry to ask: the one that is set, else that of the server in ./dragoman.yaml, else the usual one. */
export async function findRegistry(registry: string | undefined): Promise<NamedRegistry> {
  if (registry !== undefined) return { url: registry, isGiven: true };
  return { url: (await configuredRegistry()) ?? USUAL_REGISTRY, isGiven: false };
}

async function configuredRegistry(): Promise<string | undefined> {
  const { findConfig } = await import("../../../core/cli/commands/serve.ts");
  const file = findConfig();
  if (!existsSync(file)) return undefined;
  const { loadConfig } = await import("../../../core/server/config/index.ts");
  // A configuration that cannot be read is reported by the commands that need it.
  const config = await loadConfig(file).catch(() => undefined);
  if (config === undefined || config.server.port === 0) return undefined;
  const { host, path, port, publicUrl, tls } = config.server;
  const reached = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return publicUrl ?? `${tls === undefined ? "http" : "https"}://${reached}:${port}${path.replace(/\/+$/, "")}`;
}

/** `isTarget`: the command is about the registry, so that the credentials of the settings are for it and not for an agent. */
export async function openRegistry(session: Session, url: string, isTarget: boolean): Promise<RegistryClient> {
  const { output, settings, stop } = session;
  const { createRegistryClient } = await import("../client/registry-client.ts");
  const isTrusted = isTarget || settings.credentialOrigin.includes(new URL(url).origin);
  const stored = await loadStoredLogin(output, new URL(url).origin, undefined);
  const tls = await readTlsOptions(settings);
  const options: RegistryOptions = {
    signal: stop.signal,
    retry: { attempts: 2, baseMs: 200, capMs: 1000 },
    headers: isTrusted ? headersOf(settings) : undefined,
    credentials: stored?.provider,
    tls: isTrusted ? tls : tls && withoutCertificate(tls),
    onExchange: settings.debug ? createExchangeLog(output) : undefined,
  };
  return createRegistryClient(url, options);
}

function headersOf({ apiKey, bearer, svcParam }: Settings): Record<string, string> {
  return {
    ...Object.fromEntries(svcParam),
    ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    ...(apiKey !== undefined && { "X-API-Key": apiKey }),
  };
}

interface LookedUp {
  readonly registry: string;
  /** In the order in which to try them; only one unless a skill was asked for. */
  readonly agents: readonly RegistryEntry[];
  /** There was no registry to ask. */
  readonly isAbsent?: true;
}

/** Undefined if `-a` is an address; without agents for a word that the registry does not know: it may be a host. */
async function lookUp(session: Session, agentCard: string): Promise<LookedUp | undefined> {
  const reference = isFile(agentCard) ? undefined : parseReference(agentCard);
  if (reference === undefined) return undefined;
  const mayBeHost = "registered" in reference && !/[\s:]/.test(reference.registered);
  const { isGiven, url } = await findRegistry(session.settings.registry);
  let agents: readonly RegistryEntry[];
  try {
    agents = await (await openRegistry(session, url, false)).find(reference);
  } catch (error) {
    if (isGiven && ConnectionError.is(error) && error.code === "unreachable") {
      throw new CommandError(
        "A2ACLI_ERR_UNREACHABLE",
        `${describe(reference)} cannot be looked up: the registry at ${redactUrl(url)} cannot be reached.`,
        "Check --registry or A2ACLI_REGISTRY, or name the agent by its URL. --debug shows the exchange.",
        { cause: error },
      );
    }
    if (isGiven || !isAbsent(error)) throw toRegistryFailure(error);
    if (mayBeHost) return { registry: url, agents: [], isAbsent: true };
    throw noRegistryError(reference, url, error);
  }
  if (agents.length === 0 && mayBeHost && !isGiven) return { registry: url, agents };
  const best = requireOne(reference, agents, url);
  return { registry: url, agents: "skill" in reference ? agents : [best] };
}

/** The best one, or an error if there is none, or if a name means several. */
export function requireOne(reference: RegistryReference, agents: readonly RegistryEntry[], url: string): RegistryEntry {
  const [best, ...others] = agents;
  if (best === undefined) throw notFoundError(reference, url);
  if ("registered" in reference && others.length > 0) throw ambiguityError(reference.registered, agents, url);
  return best;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** There is no registry at the address. */
function isAbsent(error: unknown): boolean {
  if (error instanceof RegistryError) return error.code === "NOT_FOUND" || error.code === "INVALID_RESPONSE";
  return ConnectionError.is(error) && error.code !== "aborted";
}

const describe = (reference: RegistryReference): string =>
  "skill" in reference ? `An agent with the skill "${reference.skill}"` : `The agent "${reference.registered}"`;

export function notFoundError(reference: RegistryReference, url: string): CommandError {
  const what = "skill" in reference ? `agent with the skill "${reference.skill}"` : `agent "${reference.registered}"`;
  return new CommandError(
    "A2ACLI_ERR_CARD_NOT_FOUND",
    `There is no ${what} in the registry at ${redactUrl(url)}.`,
    `dragoman registry list --registry ${redactUrl(url)} shows those that it has; a host is written as https://host.`,
  );
}

function noRegistryError(reference: RegistryReference, url: string, cause: unknown): CommandError {
  const isWord = "registered" in reference && !/[\s:]/.test(reference.registered);
  return new CommandError(
    "A2ACLI_ERR_CARD_NOT_FOUND",
    `${describe(reference)} ${isWord ? "is not a host that can be reached, and" : "has to be looked up, but"} no registry answers at ${redactUrl(url)}.`,
    "Name a registry with --registry or A2ACLI_REGISTRY, or the agent by its URL.",
    { cause },
  );
}

function ambiguityError(name: string, agents: readonly RegistryEntry[], url: string): CommandError {
  const list = agents.map(({ displayName, id, identifier, url: card }) =>
    safeLine(`${id ?? identifier} (${displayName}${card === undefined ? "" : `, ${redactUrl(card)}`})`),
  );
  return new CommandError(
    "DRAGOMAN_ERR_AMBIGUOUS_AGENT",
    `"${name}" is the name of ${agents.length} agents in the registry at ${redactUrl(url)}: ${list.join("; ")}.`,
    "Name one of them by its id.",
  );
}

/** What a registry returned, as an error of the command line; `credentialsHint` says how it can be given credentials. */
export function toRegistryFailure(error: unknown, credentialsHint = CREDENTIALS_HINT): unknown {
  if (!(error instanceof RegistryError)) return error;
  const { code, message } = error;
  const cause = { cause: error };
  switch (code) {
    case "NOT_FOUND":
      return new CommandError(
        "A2ACLI_ERR_CARD_NOT_FOUND",
        message,
        "dragoman registry list shows what there is.",
        cause,
      );
    case "UNAUTHENTICATED":
      return new CommandError(
        "A2ACLI_ERR_CREDENTIALS_MISSING",
        `The registry requires credentials: ${message}`,
        credentialsHint,
        cause,
      );
    case "PERMISSION_DENIED":
      return new CommandError("A2ACLI_ERR_AUTH_FAILED", message, null, cause);
    case "INTERNAL_ERROR":
    case "UNAVAILABLE":
      return new CommandError("A2ACLI_ERR_UNREACHABLE", message, null, cause);
    case "INVALID_ARGUMENT":
    case "RATE_LIMIT_EXCEEDED":
    case "INVALID_RESPONSE":
      return new CommandError(`DRAGOMAN_ERR_REGISTRY_${code}`, message, null, cause);
  }
}

const CREDENTIALS_HINT =
  "With -a, credentials are for the agent; name the origin of the registry in --credential-origin if they are for it as well.";

/** Reads a card at an address. */
type ReadCard = (target: string) => Promise<FetchedCard>;

/**
 * The card that `-a` names. If it had to be looked up, later commands that the session prints name the agent that was
 * chosen, and credentials are kept from it unless it is at an origin that the user named: anyone may be in a registry.
 */
async function readNamedCard(session: Session, agentCard: string, read: ReadCard): Promise<FetchedCard> {
  const found = await lookUp(session, agentCard);
  if (found === undefined) return read(agentCard);
  if (found.agents.length === 0) {
    return read(agentCard).catch((error: unknown) => {
      const isUnknownHost = ConnectionError.is(error) && error.code === "unreachable" && failedBeforeSending(error);
      if (!isUnknownHost) throw error;
      const reference = parseReference(agentCard) as RegistryReference;
      throw found.isAbsent === true
        ? noRegistryError(reference, found.registry, error)
        : notFoundError(reference, found.registry);
    });
  }
  const { agents, registry } = found;
  for (const [at, entry] of agents.entries()) {
    try {
      const card = entry.url === undefined ? await readInlineCard(session, entry, registry) : await read(entry.url);
      const impostor = entry.url === undefined ? undefined : describeImpostor(listedIdentity(entry), card.card);
      if (impostor !== undefined) throw new RegistryError("UNAVAILABLE", `${entry.displayName}: ${impostor}`);
      useFound(session, entry, registry);
      return card;
    } catch (error) {
      const isOther = error instanceof RegistryError;
      const isAway = ConnectionError.is(error) && error.code !== "aborted";
      if ((!isOther && !isAway) || at === agents.length - 1) throw toRegistryFailure(error);
      session.output.info(`${entry.displayName} cannot be reached; trying the next one. ${error.message}`);
    }
  }
  throw notFoundError(parseReference(agentCard) as RegistryReference, registry);
}

/** Its origin is that of the registry, which has sent it. */
async function readInlineCard({ settings }: Session, { data = {} }: RegistryEntry, url: string): Promise<FetchedCard> {
  const { readGivenCard } = await import("../../../core/client/card/fetch-card.ts");
  return readGivenCard(data, url, {
    version: settings.a2aVersion,
    dialect: settings.dialect,
    ...(await readTrustOptions(settings)),
  });
}

function useFound(session: Session, entry: RegistryEntry, registry: string): void {
  const { output, settings } = session;
  const place = entry.url ?? registry;
  output.info(`Using ${entry.displayName}, ${redactUrl(place)}, from the registry at ${redactUrl(registry)}.`);
  const named = settings.agentCardFlag === undefined ? {} : { agentCardFlag: entry.url };
  const isTrusted = createCredentialGate({ cardUrl: registry, credentialOrigins: settings.credentialOrigin });
  const { apiKey, authCode, bearer, keys, svcParam } = settings;
  const hasAny = (apiKey ?? authCode ?? bearer ?? keys) !== undefined || svcParam.length > 0;
  // An inline card is at no address that a later command could name.
  session.settings = entry.url === undefined ? settings : { ...settings, ...named };
  if (!hasAny || isTrusted({ url: place })) return;
  const { origin } = new URL(place);
  output.warn(
    `The registry chose the agent: credentials and service parameters are not sent to ${origin}. Name it with --credential-origin ${origin} if you trust it.`,
  );
  const none = { apiKey: undefined, authCode: undefined, bearer: undefined, keys: undefined, svcParam: [] };
  session.settings = { ...session.settings, ...none };
}

export const sessionParts: SessionParts = { readNamedCard };
