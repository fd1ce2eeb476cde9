/** The members by which others recognise an agent: its name, who provides it, and the hosts it is called at. */

import type { AgentCard } from "../model/card.ts";
import type { JsonObject } from "../model/json.ts";
import { parseUrl } from "../model/url.ts";

/** An agent as a registry lists it. */
interface ListedAgent {
  readonly displayName: string;
  readonly metadata?: JsonObject;
}

export interface AgentIdentity {
  readonly name: string;
  readonly provider: string;
  /** Sorted, each once. */
  readonly hosts: readonly string[];
}

export function identityOf({ name, provider, supportedInterfaces }: AgentCard): AgentIdentity {
  const hosts = supportedInterfaces.map(({ url }) => hostOf(url)?.host ?? url);
  return { name, provider: provider?.organization ?? "", hosts: [...new Set(hosts)].sort() };
}

/** How the identity of the card differs; empty if it is the same agent. */
export function identityChanges(before: AgentIdentity, after: AgentIdentity): readonly string[] {
  const [old, now] = [toTexts(before), toTexts(after)];
  return (Object.keys(old) as (keyof typeof old)[]).flatMap((key) =>
    old[key] === now[key] ? [] : [`${key}: ${old[key] || "none"} → ${now[key] || "none"}`],
  );
}

const toTexts = ({ name, provider, hosts }: AgentIdentity) => ({ name, provider, hosts: hosts.join(", ") });

/** Undefined for registries that do not list it. */
export function listedIdentity({ displayName, metadata = {} }: ListedAgent): AgentIdentity | undefined {
  const { hosts, provider = "" } = metadata;
  if (typeof hosts !== "string" || typeof provider !== "string") return undefined;
  return { name: displayName, provider, hosts: hosts.split(",") };
}

/** Why a card that was just read is not that of the agent that a registry lists; undefined if it is. */
export function describeImpostor(listed: AgentIdentity | undefined, card: AgentCard): string | undefined {
  if (listed === undefined) return undefined;
  const live = identityOf(card);
  // The card in another version of the protocol may have fewer interfaces.
  const isKnown = live.hosts.every((host) => listed.hosts.includes(host));
  const changes = identityChanges(listed, isKnown ? { ...live, hosts: listed.hosts } : live);
  return changes.length === 0 ? undefined : `The card is not that of the registered agent (${changes.join("; ")}).`;
}

export const HELD_BACK =
  "The registry holds it back: its card has become that of another agent, and its owner has not registered it again.";

export function isHeldBack({ metadata }: Pick<ListedAgent, "metadata">): boolean {
  return metadata?.heldBack === true;
}

/** Interfaces of gRPC may be `host:port`, without a scheme. */
export function hostOf(url: string): URL | undefined {
  return parseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `https://${url}`);
}
