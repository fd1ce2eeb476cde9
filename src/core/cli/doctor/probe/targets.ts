/** Which agents are probed: those of a configuration and those of registries, and what may be called for each. */

import { mayCallGrpc, openRemote } from "../../../../features/gateway/build-remote.ts";
import type { ModelTarget } from "../../../../features/llm/doctor.ts";
import { bareHost, type RegistryEntry } from "../../../../features/registry/cli/doctor.ts";
import { createGuardedFetch } from "../../../auth/guarded-fetch/guarded-fetch.ts";
import { classifyAddress, parseAddress } from "../../../auth/guarded-fetch/target-policy.ts";
import { parseGrpcAddress } from "../../../client/transport/grpc-channels.ts";
import type { AgentCard, AgentInterface } from "../../../model/card.ts";
import { canParseUrl } from "../../../model/url.ts";
import type { DragomanConfig } from "../../../server/config/index.ts";
import { isLoopback, LOOPBACK_TARGETS } from "../../../wire/loopback.ts";
import type { Output } from "../../output.ts";
import { agentUrl, agentUrlOfTarget, loadStoredLogin } from "../../session/credentials.ts";
import type { ProbeTarget } from "./agent.ts";

const CONFIGURATION = "configuration";

/** The agents as the running server serves them, and what they depend on elsewhere. */
export function configTargets(config: DragomanConfig, serverUrl: string | undefined, output: Output) {
  const agents: ProbeTarget[] = [];
  const models: ModelTarget[] = [];
  for (const [name, { source }] of config.agents) {
    if (serverUrl !== undefined) agents.push(servedTarget(name, serverUrl, output));
    if (source.kind === "llm" || source.kind === "writer") models.push({ agent: name, ...source.llm });
    if (source.kind === "remote") agents.push(upstreamTarget(name, source));
  }
  return { agents, models };
}

function servedTarget(name: string, serverUrl: string, output: Output): ProbeTarget {
  return {
    agent: name,
    source: CONFIGURATION,
    card: servedCardUrl(serverUrl, name),
    connect: {},
    login: (url, card) => findLogin(output, url, card),
  };
}

export function servedCardUrl(serverUrl: string, name: string): string {
  return `${serverUrl.replace(/\/+$/, "")}/agents/${encodeURIComponent(name)}/.well-known/agent-card.json`;
}

function upstreamTarget(name: string, source: Parameters<typeof openRemote>[0]): ProbeTarget {
  const { connect, hosts, readCard } = openRemote(source);
  const { binding: _, credentials, credentialOrigins, keys, ...rest } = connect;
  return {
    agent: name,
    part: "upstream",
    source: CONFIGURATION,
    card: source.url,
    connect: rest,
    mayCall: (entry, cardUrl) => {
      const authority = grpcAuthority(entry, cardUrl);
      return authority === undefined || mayCallGrpc(authority, hosts);
    },
    async login(_url, card) {
      if (card !== undefined) readCard?.(card);
      if ((credentials ?? keys) === undefined) return undefined;
      return { ...(credentials && { credentials }), ...(keys && { keys }), credentialOrigins: credentialOrigins ?? [] };
    },
  };
}

interface AllowedTargets {
  readonly allowPrivate: boolean;
  readonly allowLoopback: boolean;
}

/**
 * Others chose these addresses, so they must be public, except at the registry's own origin, which the user chose.
 * `allowLoopback`: the registry is reached from this machine only, so it may also name agents on this machine.
 */
export function registryTarget(
  entry: RegistryEntry,
  registryUrl: string,
  allowed: AllowedTargets,
  output: Output,
): ProbeTarget {
  return {
    agent: entry.name,
    source: registryUrl,
    card: entry.card,
    known: entry,
    connect: { fetch: createForeignFetch(registryUrl, allowed) },
    mayCall: (one, cardUrl) => allowed.allowPrivate || mayCallForeign(one, cardUrl, allowed.allowLoopback),
    login: (url, card) => findLogin(output, url, card),
  };
}

function createForeignFetch(
  registryUrl: string,
  { allowLoopback, allowPrivate }: AllowedTargets,
): typeof globalThis.fetch {
  const { hostname, origin } = new URL(registryUrl);
  const guarded = createGuardedFetch({ allowPrivate, allow: allowLoopback ? LOOPBACK_TARGETS : [] });
  const atRegistry = createGuardedFetch({ allow: [bareHost(hostname)], maxRedirects: 0 });
  return (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    return (canParseUrl(url) && new URL(url).origin === origin ? atRegistry : guarded)(input, init);
  };
}

/** The gRPC library looks up names itself, so where a name leads cannot be checked; an address can. */
function mayCallForeign(entry: AgentInterface, cardUrl: string | undefined, allowLoopback: boolean): boolean {
  const authority = grpcAuthority(entry, cardUrl);
  if (authority === undefined) return true;
  if (!canParseUrl(`http://${authority}`)) return false;
  const { hostname } = new URL(`http://${authority}`);
  if (allowLoopback && isLoopback(hostname)) return true;
  const address = parseAddress(hostname);
  return address !== undefined && classifyAddress(address) === "public";
}

/** Undefined for other bindings. */
function grpcAuthority({ protocolBinding, url }: AgentInterface, cardUrl: string | undefined): string | undefined {
  if (protocolBinding.toUpperCase() !== "GRPC") return undefined;
  return parseGrpcAddress(url, { cardUrl })?.authority ?? "";
}

/** From `dragoman auth login`, which stores credentials by agent: none is sent to an agent that it was not made for. */
async function findLogin(output: Output, url: string | undefined, card: AgentCard | undefined) {
  const agent = card === undefined ? url && agentUrlOfTarget(url) : agentUrl(url, card);
  const stored = await loadStoredLogin(output, agent, card);
  return stored && { credentials: stored.provider, credentialOrigins: stored.origins };
}

/** How the server of a configuration is reached. */
export function serverUrlOf({ host, port, publicUrl, tls }: DragomanConfig["server"]): string {
  if (publicUrl !== undefined) return publicUrl;
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const name = reachable.includes(":") ? `[${reachable}]` : reachable;
  return `${tls === undefined ? "http" : "https"}://${name}:${port}`;
}
