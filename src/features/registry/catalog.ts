/** Entries in the shapes of AI Catalog and ARD (§4.2), and the details beyond them. */

import { identityOf } from "../../core/client/registry-identity.ts";
import type { JsonObject, JsonValue } from "../../core/model/json.ts";
import { dialectsOf, identifierOf, type RegistryEntry } from "./entry.ts";
import { CARD_MEDIA_TYPE } from "./search/listed.ts";

export const REGISTRY_MEDIA_TYPE = "application/ai-registry+json";

const toTime = (milliseconds: number | undefined) =>
  milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();

const MIN_QUERIES = 2;
const MAX_QUERIES = 5;
const MAX_TAGS = 100;

/** With its id. `metadata` has scalar values only, as the schema of AI Catalog demands. */
export function toCatalogEntry(entry: RegistryEntry): JsonObject {
  const { id, card, url, document, source, visibility, health, signature, heldBack, expiresAt } = entry;
  const queries = card.skills.flatMap(({ examples = [] }) => examples).slice(0, MAX_QUERIES);
  const tags = [...new Set(card.skills.flatMap(({ tags }) => tags))].slice(0, MAX_TAGS);
  // What a server says of its own agents is as live as their cards.
  const identity = source === "server" ? undefined : identityOf(card);
  const content = url === undefined ? { data: document ?? toJson(card) } : { url };
  return {
    id,
    identifier: identifierOf(entry),
    displayName: card.name,
    type: CARD_MEDIA_TYPE,
    ...content,
    description: card.description,
    tags,
    capabilities: card.skills.map(({ id: skill }) => skill),
    representativeQueries: queries.length < MIN_QUERIES ? undefined : queries,
    version: card.version,
    updatedAt: toTime(entry.updatedAt),
    metadata: {
      id,
      health,
      source,
      visibility,
      dialects: dialectsOf(card).join(","),
      bindings: [...new Set(card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding))].join(","),
      signature: signature.status,
      heldBack: heldBack !== undefined,
      hosts: identity?.hosts.join(","),
      provider: identity?.provider || undefined,
      expiresAt: toTime(expiresAt),
    } as JsonObject,
  } as JsonObject;
}

/** For a single agent: with how it is registered, and its card in the form of A2A 1.0. */
export function toDetails(entry: RegistryEntry): JsonObject {
  const { ttlMs, heldBack, signature, findings, failures, problem, probe } = entry;
  const registration = {
    createdAt: toTime(entry.createdAt),
    updatedAt: toTime(entry.updatedAt),
    checkedAt: toTime(entry.checkedAt),
    ttlSeconds: ttlMs === undefined ? undefined : ttlMs / 1_000,
    expiresAt: toTime(entry.expiresAt),
    probe,
    failures,
    problem,
    signature: toJson(signature),
    findings: findings.map(toJson),
    heldBack: heldBack === undefined ? undefined : { since: toTime(heldBack.since), changes: heldBack.changes },
  };
  return { ...toCatalogEntry(entry), registration: registration as JsonObject, card: toJson(entry.card) };
}

/** What is made of plain objects is JSON. */
function toJson(value: object): JsonObject {
  return value as { readonly [key: string]: JsonValue };
}
