/** Which agents are probed, and what may be called for each. */

import { parseGrpcAddress } from "../../../client/transport/grpc-channels.ts";
import type { AgentCard, AgentInterface } from "../../../model/card.ts";
import type { DragomanConfig } from "../../../server/config/index.ts";
import type { Output } from "../../output.ts";
import { agentUrl, agentUrlOfTarget, loadStoredLogin } from "../../session/credentials.ts";
import type { ProbeTarget } from "./agent.ts";

export const CONFIGURATION = "configuration";

/** An agent as the running server serves it. */
export function servedTarget(name: string, serverUrl: string, output: Output): ProbeTarget {
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

/** Undefined for other bindings. */
export function grpcAuthority(
  { protocolBinding, url }: AgentInterface,
  cardUrl: string | undefined,
): string | undefined {
  if (protocolBinding.toUpperCase() !== "GRPC") return undefined;
  return parseGrpcAddress(url, { cardUrl })?.authority ?? "";
}

/** From `dragoman auth login`, which stores credentials by agent: none is sent to an agent that it was not made for. */
export async function findLogin(output: Output, url: string | undefined, card: AgentCard | undefined) {
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
