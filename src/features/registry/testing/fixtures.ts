import type { AgentCard, AgentSkill } from "../../../core/model/card.ts";
import { invalidParams } from "../../../core/model/errors.ts";
import type { JsonObject } from "../../../core/model/json.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import type { CardSource, FetchedCard } from "../card-source.ts";
import type { RegistryRecords } from "../changes.ts";
import type { RegistryEntry } from "../entry.ts";
import { DEFAULT_REGISTRY_TIMES } from "../health.ts";
import { DEFAULT_REGISTRY_LIMITS, Registry, type RegistryOptions } from "../registry.ts";

export function skillOf(id: string, members: Partial<AgentSkill> = {}): AgentSkill {
  return { id, name: id, description: "", tags: [], ...members };
}

export function cardOf(name: string, members: Partial<AgentCard> = {}): AgentCard {
  const url = `https://${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.example.com/a2a`;
  return {
    name,
    description: `The agent ${name}.`,
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: {},
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    ...members,
  };
}

export function entryOf(id: string, card: AgentCard, members: Partial<RegistryEntry> = {}): RegistryEntry {
  return {
    id,
    owner: "alice",
    visibility: "public",
    source: "inline",
    card,
    probe: false,
    health: "unknown",
    createdAt: 1_000,
    updatedAt: 1_000,
    failures: 0,
    signature: { status: "absent" },
    findings: [],
    ...members,
  };
}

/** Records in memory, in the order of their keys, as every store lists them. */
export class MemoryRecords implements RegistryRecords {
  readonly spaces = new Map<string, Map<string, string>>();

  async record(space: string, key: string): Promise<string | undefined> {
    return this.#space(space).get(key);
  }

  async records(space: string, { after, limit }: { readonly after?: string; readonly limit: number }) {
    const rest = [...this.#space(space)].filter(([key]) => after === undefined || key > after);
    rest.sort(([one], [other]) => (one < other ? -1 : 1));
    return rest.slice(0, limit).map(([key, value]) => ({ key, value }));
  }

  async put({ space, key, value, ifValue, keep }: Parameters<RegistryRecords["put"]>[0]): Promise<boolean> {
    const records = this.#space(space);
    if (ifValue !== undefined && (records.get(key) ?? null) !== ifValue) return false;
    records.delete(key);
    records.set(key, value);
    for (const oldest of records.keys()) if (keep !== undefined && records.size > keep) records.delete(oldest);
    return true;
  }

  async delete(space: string, key: string): Promise<void> {
    this.#space(space).delete(key);
  }

  #space(name: string): Map<string, string> {
    const space = this.spaces.get(name) ?? new Map<string, string>();
    this.spaces.set(name, space);
    return space;
  }
}

/** Cards by URL; one that is not there cannot be read. */
export class FakeCards implements CardSource {
  readonly cards = new Map<string, AgentCard>();
  /** URL and ETag of each fetch. */
  readonly fetched: string[] = [];
  readonly silent = new Set<string>();

  candidates(url: string): readonly string[] {
    return [url];
  }

  async fetch(url: string, etag?: string): Promise<FetchedCard | "unchanged"> {
    this.fetched.push(`${url} ${etag ?? "-"}`);
    const card = this.cards.get(url);
    if (card === undefined) throw invalidParams("url", "the card could not be fetched");
    const tag = JSON.stringify(card);
    if (etag === tag) return "unchanged";
    return { ...this.#read(card), url, etag: tag };
  }

  async readInline(document: JsonObject) {
    return this.#read(document as object as AgentCard);
  }

  async probe({ name }: AgentCard): Promise<void> {
    if (this.silent.has(name)) throw invalidParams("probe", "the agent did not answer");
  }

  #read(card: AgentCard) {
    const document = card as object as JsonObject;
    return { card, document, text: JSON.stringify(card), signature: { status: "absent" } as const, findings: [] };
  }
}

export function createRegistry(options: Pick<RegistryOptions, "clock"> & Partial<RegistryOptions>): Registry {
  const registry = new Registry({
    records: new MemoryRecords(),
    cards: new FakeCards(),
    random: () => 0.5,
    log: SILENT_LOG,
    limits: DEFAULT_REGISTRY_LIMITS,
    times: DEFAULT_REGISTRY_TIMES,
    visibility: "private",
    serverEntries: () => [],
    serverEntryAt: () => undefined,
    ...options,
  });
  registry.open();
  return registry;
}
