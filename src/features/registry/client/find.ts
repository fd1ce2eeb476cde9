import type { RegistryReference } from "../../../core/client/reference.ts";
import { HELD_BACK, isHeldBack } from "../../../core/client/registry-identity.ts";
import { type RegistryClient, type RegistryEntry, RegistryError } from "./types.ts";

type CallOptions = Parameters<RegistryClient["find"]>[1];

const CARD_TYPE = "application/a2a-agent-card+json";
const MAX_CANDIDATES = 100;

/**
 * The agents that a reference may mean. For a skill, those of the registry itself, or if it has none, those of its peers,
 * in the order in which to try them; for a name, those of the closest kind of match. Some may be held back.
 */
export function findAgents(
  registry: RegistryClient,
  reference: RegistryReference,
  call: CallOptions,
): Promise<readonly RegistryEntry[]> {
  return "skill" in reference
    ? findBySkill(registry, reference.skill, call)
    : findByName(registry, reference.registered, call);
}

/** Those that may be called. Another agent with the same name does not stand for one that is held back. */
export async function findCallable(
  registry: RegistryClient,
  reference: RegistryReference,
  call: CallOptions,
): Promise<readonly RegistryEntry[]> {
  const found = await findAgents(registry, reference, call);
  const held = found.find(isHeldBack);
  const callable = "skill" in reference || found.length === 1 ? found.filter((entry) => !isHeldBack(entry)) : found;
  if (held === undefined || callable.length > 0) return callable;
  throw new RegistryError("UNAVAILABLE", `${held.displayName} (${held.id ?? held.identifier}): ${HELD_BACK}`);
}

async function findBySkill(
  registry: RegistryClient,
  skill: string,
  call: CallOptions,
): Promise<readonly RegistryEntry[]> {
  const hasSkill = (entry: RegistryEntry) => isAgent(entry) && entry.capabilities?.includes(skill) === true;
  const { items } = await registry.listPage({ filter: { skill }, pageSize: MAX_CANDIDATES }, call);
  const own = items.filter(hasSkill);
  if (own.some((entry) => healthRank(entry) === 0 && !isHeldBack(entry))) return own.sort(byPreference);
  const { results } = await registry.search({ text: skill, filter: { skill }, pageSize: MAX_CANDIDATES }, call);
  return distinct([...own, ...results.filter(hasSkill)]).sort(byPreference);
}

/** The kinds of match, closest first. An agent of the registry's own server is known there by its name in the URL. */
const MATCHES: readonly ((entry: RegistryEntry, name: string) => boolean)[] = [
  ({ id, identifier }, name) => id === name || identifier === name,
  ({ id }, name) => id === `self.${name}`,
  ({ displayName, identifier }, name) =>
    displayName.toLowerCase() === name.toLowerCase() || identifier.endsWith(`:${name}`),
];

async function findByName(
  registry: RegistryClient,
  name: string,
  call: CallOptions,
): Promise<readonly RegistryEntry[]> {
  const known = await Promise.all([name, `self.${name}`].map((id) => getIfKnown(registry, id, call)));
  const direct = known.find((entry) => entry !== undefined);
  if (direct !== undefined) return [direct];
  const { items } = await registry.listPage({ filter: { displayName: name }, pageSize: MAX_CANDIDATES }, call);
  const { results } = await registry.search({ text: name, pageSize: MAX_CANDIDATES }, call);
  return matchName([...items, ...results], name);
}

/** The agents that a name means; several if it is ambiguous. */
export function matchName(entries: readonly RegistryEntry[], name: string): readonly RegistryEntry[] {
  const agents = distinct(entries.filter(isAgent));
  for (const fits of MATCHES) {
    const fitting = agents.filter((entry) => fits(entry, name));
    if (fitting.length > 0) return fitting.sort(byPreference);
  }
  return [];
}

async function getIfKnown(registry: RegistryClient, id: string, call: CallOptions) {
  // Other texts cannot be ids; a registry would refuse them.
  if (!/^[\w.-]{1,64}$/.test(id)) return undefined;
  try {
    return await registry.get(id, call);
  } catch (error) {
    // Registries of others may have no such route.
    if (error instanceof RegistryError && (error.code === "NOT_FOUND" || error.code === "INVALID_ARGUMENT"))
      return undefined;
    throw error;
  }
}

function isAgent({ data, type, url }: RegistryEntry): boolean {
  return type.startsWith(CARD_TYPE) && (url !== undefined || data !== undefined);
}

/** The same agent may come from several registries. */
function distinct(entries: readonly RegistryEntry[]): RegistryEntry[] {
  const byAddress = new Map<string, RegistryEntry>();
  for (const entry of entries) {
    const key = entry.url ?? entry.identifier;
    if (!byAddress.has(key)) byAddress.set(key, entry);
  }
  return [...byAddress.values()];
}

const HEALTH: readonly unknown[] = ["up", "unknown", "stale", "dead"];

/** 0 for those that the registry reaches, and for those of registries that do not say. */
function healthRank({ metadata }: RegistryEntry): number {
  return Math.max(0, HEALTH.indexOf(metadata?.health));
}

/** Healthy ones first, then the better match; the id decides between equals, so that the choice can be foreseen. */
function byPreference(one: RegistryEntry, other: RegistryEntry): number {
  const scoreOf = (entry: RegistryEntry) => ("score" in entry && typeof entry.score === "number" ? entry.score : 0);
  const idOf = ({ id, identifier }: RegistryEntry) => id ?? identifier;
  return healthRank(one) - healthRank(other) || scoreOf(other) - scoreOf(one) || (idOf(one) < idOf(other) ? -1 : 1);
}
