import { readFile } from "node:fs/promises";
import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { CredentialProvider } from "../../../core/auth/login/contract.ts";
import { parsePublicKeys } from "../../../core/auth/signatures/keys.ts";
import type { HttpServing } from "../../../core/dialects/contract.ts";
import { ANONYMOUS } from "../../../core/model/caller.ts";
import type { Clock, IdGenerator, Log, Meter } from "../../../core/model/ports.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import type { Admission } from "../../../core/server/access/admission.ts";
import type { ServedAgentService } from "../../../core/server/agent-service.ts";
import type { AuditLog } from "../../../core/server/audit/audit-log.ts";
import { etagOf, matchesEtag } from "../../../core/server/cards/card-documents.ts";
import { type FullReply, jsonReply, type RequestHead } from "../../../core/wire/exchange.ts";
import type { Upstreams } from "../../gateway/upstreams.ts";
import { createCardSource, MAX_CARD_BYTES, type TrustOptions } from "../card-source.ts";
import { REGISTRY_MEDIA_TYPE, toCatalogEntry } from "../catalog.ts";
import type { RegistryRecords } from "../changes.ts";
import { type RegistryEntry, serverEntryId, toPublisher, type Visibility } from "../entry.ts";
import { createFederatedSearch } from "../federate.ts";
import { DEFAULT_REGISTRY_TIMES } from "../health.ts";
import { DEFAULT_REGISTRY_LIMITS, Registry, type RegistryLimits } from "../registry.ts";
import { createFindAgents } from "./find-agents.ts";
import { createRegistryRoutes, REGISTRY_PATH } from "./routes.ts";

/** The registry of a server: its own agents, and those that callers register. */
export interface RegistryServeOptions extends TrustOptions, Partial<RegistryLimits> {
  /** Other registries that a search also asks, by their base URLs. They may be in private networks. */
  readonly peers?: readonly string[];
  /**
   * Let cards be in private networks and on this machine. Anyone who may register can then make the server read there;
   * default: only where no other machine may call.
   */
  readonly allowPrivateTargets?: boolean;
  /** Who may see an agent that is registered without saying so. Default: `private`, its owner only. */
  readonly visibility?: Visibility;
  /** How often cards are read again. Default: ten minutes. */
  readonly refreshMs?: number;
  /** Files with public keys that are trusted to sign cards, besides `cardKeys`: PEM, JWK or JWK set. */
  readonly keyFiles?: readonly string[];
  /** Names of agents of this server that are not listed. */
  readonly unlisted?: readonly string[];
  /**
   * Other registries, or servers that have one, where the listed agents of this server are registered while it runs.
   * Only `serve` does so.
   */
  readonly registerWith?: readonly RegistryTarget[];
}

/** The URL of a registry, with credentials if it requires some. */
export type RegistryTarget = string | { readonly url: string; readonly credentials?: CredentialProvider };

interface RegistryParts {
  readonly records: RegistryRecords;
  readonly services: ReadonlyMap<string, ServedAgentService>;
  readonly defaultName: string;
  readonly upstreams: Pick<Upstreams, "statuses">;
  readonly baseUrl: () => string;
  readonly local?: boolean;
  /** Whether callers without credentials are served. */
  readonly isOpen: boolean;
  readonly admission: Admission;
  readonly audit: AuditLog | undefined;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly random: () => number;
  readonly log: Log;
  readonly meter: Meter;
  readonly keepAliveMs: number;
  readonly maxWatches: number;
}

export const CATALOG_PATH = "/.well-known/ai-catalog.json";
/** Entries of the catalog at most; there may be more in the registry, which it refers to. */
const MAX_CATALOG = 1_000;
const MAX_PEER_BYTES = 4 * 1024 * 1024;
const MAX_REDIRECTS = 3;
const FETCH_TIMEOUT_MS = 10_000;

/** Not started: `registry.open()` reads what is stored. */
export async function openRegistry(options: RegistryServeOptions, parts: RegistryParts) {
  const { baseUrl, ids, local, log } = parts;
  const { peers: given = [], refreshMs = DEFAULT_REGISTRY_TIMES.refreshMs } = options;
  const peers = given.map((peer) => peer.replace(/\/+$/, ""));
  const limited = { maxRedirects: MAX_REDIRECTS, timeoutMs: FETCH_TIMEOUT_MS };
  const allowPrivate = options.allowPrivateTargets ?? local === true;
  const own = createServerEntries(options.unlisted ?? [], parts);
  const source = () => `${baseUrl()}/${REGISTRY_PATH}`;
  const registry = new Registry({
    ...parts,
    cards: createCardSource({
      fetch: createGuardedFetch({ ...limited, allowPrivate, maxBytes: MAX_CARD_BYTES }),
      trust: { ...options, cardKeys: [...(options.cardKeys ?? []), ...(await readKeys(options.keyFiles ?? []))] },
    }),
    limits: {
      agents: options.agents ?? DEFAULT_REGISTRY_LIMITS.agents,
      agentsPerOwner: options.agentsPerOwner ?? DEFAULT_REGISTRY_LIMITS.agentsPerOwner,
    },
    times: { ...DEFAULT_REGISTRY_TIMES, refreshMs },
    visibility: options.visibility ?? "private",
    serverEntries: own.list,
    serverEntryAt: own.findByUrl,
  });
  // The operator has named the peers, so that they may be anywhere.
  const allow = peers.map((peer) => new URL(peer).hostname);
  const fetch = createGuardedFetch({ ...limited, allowPrivate, allow, maxBytes: MAX_PEER_BYTES });
  const search = createFederatedSearch({ registry, peers, fetch, log, instance: ids.node(), source });
  const serving: HttpServing = createRegistryRoutes({ ...parts, registry, search, source });
  const find = createFindAgents(registry, search);
  return { registry, serving, find, catalog: createCatalogRoute(registry, parts, own.list) };
}

async function readKeys(files: readonly string[]) {
  const keys = files.map(async (file) => parsePublicKeys(await readFile(file, "utf8"), `The file ${file}`));
  return (await Promise.all(keys)).flat();
}

function createServerEntries(unlisted: readonly string[], parts: RegistryParts) {
  const { baseUrl, clock, defaultName, services, upstreams } = parts;
  const known = new Map<string, RegistryEntry>();
  const startedAt = clock.now();
  const urlOf = (name: string) => `${baseUrl()}/agents/${encodeURIComponent(name)}`;

  function entryOf(name: string, service: ServedAgentService, statuses = upstreams.statuses): RegistryEntry {
    const { card } = service;
    const health = statuses.get(name)?.reachable === false ? "stale" : "up";
    const before = known.get(name);
    if (before?.card === card && before.health === health) return before;
    const entry: RegistryEntry = {
      id: serverEntryId(name),
      owner: "",
      visibility: unlisted.includes(name) ? "private" : "public",
      source: "server",
      url: `${urlOf(name)}/.well-known/agent-card.json`,
      card,
      probe: false,
      health,
      createdAt: startedAt,
      updatedAt: before === undefined ? startedAt : before.card === card ? before.updatedAt : clock.now(),
      failures: 0,
      signature: { status: card.signatures === undefined ? "absent" : "unchecked" },
      findings: [],
    };
    known.set(name, entry);
    return entry;
  }

  return {
    list() {
      const { statuses } = upstreams;
      return Array.from(services, ([name, service]) => entryOf(name, service, statuses));
    },
    findByUrl(url: string): RegistryEntry | undefined {
      if (!canParseUrl(url)) return undefined;
      const base = new URL(url).href.replace(/\/\.well-known\/agent(?:-card)?\.json$/, "").replace(/\/+$/, "");
      const name =
        [...services.keys()].find((one) => urlOf(one) === base) ?? (base === baseUrl() ? defaultName : undefined);
      const service = name === undefined ? undefined : services.get(name);
      return name === undefined || service === undefined ? undefined : entryOf(name, service);
    },
  };
}

interface CachedCatalog {
  readonly version: number;
  readonly own: readonly RegistryEntry[];
  /** Encoded once, so that answers that are not read share it. */
  readonly body: Buffer;
  readonly etag: string;
}

/** What this server offers, for anyone; the agents that others have registered only if anyone may call. */
function createCatalogRoute(
  registry: Registry,
  { baseUrl, isOpen }: RegistryParts,
  own: () => readonly RegistryEntry[],
) {
  let cached: CachedCatalog | undefined;

  async function documentOf(): Promise<CachedCatalog> {
    const { version } = registry;
    const entries = own();
    const isSame = cached?.version === version && entries.every((entry, at) => cached?.own[at] === entry);
    if (cached !== undefined && isSame) return cached;
    const listed = isOpen
      ? await registry.catalog(ANONYMOUS.owner, MAX_CATALOG)
      : entries.filter(({ visibility }) => visibility === "public");
    const place = new URL(baseUrl());
    const document = {
      specVersion: "1.0",
      host: { displayName: `Agents at ${place.host}` },
      entries: [toRegistryEntry(place, baseUrl()), ...listed.map(toCatalogEntry).map(({ id: _, ...entry }) => entry)],
    };
    const body = Buffer.from(JSON.stringify(document));
    cached = { version, own: entries, body, etag: etagOf(body) };
    return cached;
  }

  return async (exchange: RequestHead): Promise<FullReply> => {
    const { body, etag } = await documentOf();
    const headers = { "cache-control": "public, max-age=60", etag };
    const isKnown = matchesEtag(exchange.headers["if-none-match"] ?? "", etag);
    return isKnown ? { status: 304, headers, body: undefined } : jsonReply(200, body, headers);
  };
}

function toRegistryEntry(place: URL, baseUrl: string) {
  const spaces = [place.port, ...place.pathname.split("/")].filter((one) => /^[A-Za-z0-9._-]+$/.test(one));
  return {
    identifier: ["urn:air", toPublisher(place), ...spaces, REGISTRY_PATH].join(":"),
    displayName: `Registry at ${place.host}`,
    type: REGISTRY_MEDIA_TYPE,
    url: `${baseUrl}/${REGISTRY_PATH}/`,
    description: "Search and registration of agents.",
  };
}
