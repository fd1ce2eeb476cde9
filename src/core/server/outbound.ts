/** Calls of this server to agents that its operator has named: with which credentials, and to which hosts. */

import { createGuardedExchanger } from "../auth/guarded-fetch/guarded-exchange.ts";
import { createGuardedFetch } from "../auth/guarded-fetch/guarded-fetch.ts";
import { createClientCredentialsProvider } from "../auth/login/client-credentials.ts";
import type { ApiKeyScheme, CredentialProvider, StoredCredential } from "../auth/login/contract.ts";
import { acceptedSchemeSets } from "../auth/login/security-schemes.ts";
import { toRequestParameters } from "../auth/login/stored-credentials.ts";
import type { AgentCaller } from "../client/call/agent-caller.ts";
import { fetchCard } from "../client/card/fetch-card.ts";
import { connectCaller } from "../client/connect.ts";
import type { ConnectOptions } from "../client/options.ts";
import { parseGrpcAddress } from "../client/transport/grpc-channels.ts";
import type { AgentCard, AgentInterface } from "../model/card.ts";
import type { Log } from "../model/ports.ts";
import type { Exchanger } from "../wire/exchange.ts";
import { isLoopback, LOOPBACK_TARGETS } from "../wire/loopback.ts";
import { systemTools } from "./clock-and-ids.ts";
import type { RemoteCredentials } from "./config/credentials.ts";

/** An agent of another server, as an operator names it. */
export interface RemoteAddress {
  readonly url: string;
  readonly dialect?: string;
  readonly binding?: string;
  readonly credentials?: RemoteCredentials;
  /** Other origins that its card may refer to. */
  readonly origins?: readonly string[];
}

interface OpenedRemote {
  /** Hosts that the configuration names. */
  readonly hosts: readonly string[];
  readonly connect: ConnectOptions;
  /** Calls by HTTP, as `fetch` of `connect` would make them, for less. */
  readonly exchange: Exchanger;
  readonly readCard?: Login["readCard"];
}

/** How an upstream is called: with which credentials, and to which hosts. */
export function openRemote({ binding, credentials, dialect, origins = [], url }: RemoteAddress): OpenedRemote {
  const hosts = [url, ...origins].map((address) => new URL(address).hostname);
  // The configuration chose these hosts, so they may be anywhere; whatever the card names besides must be public.
  // A card may use the names of this machine in place of each other.
  const allow = hosts.flatMap((host) => (isLoopback(host) ? LOOPBACK_TARGETS : [host]));
  // Cards have their own limits.
  const unlimited = { timeoutMs: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
  const login = credentials && createLogin(credentials, isLoopback(hosts[0] as string));
  const connect = {
    fetch: createGuardedFetch({ allow, ...unlimited }),
    credentialOrigins: origins,
    ...(dialect !== undefined && { dialect }),
    ...(binding !== undefined && { binding }),
    ...(login?.provider && { credentials: login.provider }),
    ...(login?.keys && { keys: login.keys }),
  };
  return {
    hosts,
    connect,
    exchange: createGuardedExchanger({ allow }),
    ...(login?.readCard && { readCard: login.readCard }),
  };
}

/** Connects to an agent whose address the operator wrote, with the same guard for what its card names. */
export async function connectByUrl(url: string, log: Log): Promise<AgentCaller> {
  const { connect, exchange, hosts } = openRemote({ url });
  const { card, url: cardUrl } = await fetchCard(url, connect);
  const mayCall = createGrpcCheck(card.name, url, hosts, log);
  const callable = { ...card, supportedInterfaces: card.supportedInterfaces.filter(mayCall) };
  return connectCaller(callable, { ...connect, cardUrl }, exchange);
}

/** Addresses over gRPC are resolved by its library and cannot be checked when connecting, so their hosts are. */
export function mayCallGrpc(authority: string, hosts: readonly string[]): boolean {
  const host = authority.slice(0, authority.lastIndexOf(":"));
  return hosts.some((listed) => listed === host || (isLoopback(listed) && isLoopback(host)));
}

export function createGrpcCheck(agent: string, upstream: string, hosts: readonly string[], log: Log) {
  const reported = new Set<string>();
  return ({ protocolBinding, url }: AgentInterface): boolean => {
    if (protocolBinding.toUpperCase() !== "GRPC") return true;
    const authority = parseGrpcAddress(url, { cardUrl: upstream })?.authority ?? "";
    if (mayCallGrpc(authority, hosts)) return true;
    if (!reported.has(authority)) {
      log.warn({ agent, grpc: authority }, "Upstream's card names gRPC on another host, which is not called");
    }
    reported.add(authority);
    return false;
  };
}

interface Login {
  readonly provider?: CredentialProvider;
  readonly keys?: { readonly ak: string; readonly sk: string };
  /** Receives every new card, which may say where a key is expected. */
  readonly readCard?: (card: AgentCard) => void;
}

const DEFAULT_KEY_PLACE: ApiKeyScheme = { kind: "api-key", location: "header", parameter: "X-API-Key" };

export function createLogin(credentials: RemoteCredentials, allowLoopback: boolean): Login {
  const { ak, apiKey, basic, bearer, header, oauth, sk } = credentials;
  if (ak !== undefined && sk !== undefined) return { keys: { ak, sk } };
  if (oauth !== undefined) {
    const { clientId, clientSecret, issuer, scopes, tokenUrl } = oauth;
    const { now } = systemTools.clock;
    const server = tokenUrl === undefined ? { issuer: issuer ?? "" } : { tokenUrl };
    const { fetch } = globalThis;
    return {
      provider: createClientCredentialsProvider({ server, clientId, clientSecret, scopes, fetch, allowLoopback, now }),
    };
  }
  if (bearer !== undefined) return { provider: createFixedProvider(() => ({ kind: "bearer", token: bearer })) };
  if (basic !== undefined) return { provider: createFixedProvider(() => ({ kind: "basic", ...basic })) };
  if (apiKey === undefined) return {};
  let place = header === undefined ? DEFAULT_KEY_PLACE : { ...DEFAULT_KEY_PLACE, parameter: header };
  return {
    provider: createFixedProvider(() => ({ ...place, key: apiKey })),
    readCard(card) {
      if (header === undefined) place = findKeyPlace(card) ?? DEFAULT_KEY_PLACE;
    },
  };
}

function createFixedProvider(credential: () => StoredCredential): CredentialProvider {
  return {
    headersFor: async () => toRequestParameters([credential()]).headers,
    queryFor: async () => toRequestParameters([credential()]).query,
  };
}

function findKeyPlace(card: AgentCard): ApiKeyScheme | undefined {
  for (const { scheme } of acceptedSchemeSets(card).flat()) if (scheme.kind === "api-key") return scheme;
  return undefined;
}
