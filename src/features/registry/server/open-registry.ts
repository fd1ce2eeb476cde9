import { readFile } from "node:fs/promises";
import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { CredentialProvider } from "../../../core/auth/login/contract.ts";
import { parsePublicKeys } from "../../../core/auth/signatures/keys.ts";
import type { ServerHost, ServerPart } from "../../../core/extension/contract.ts";
import { ANONYMOUS } from "../../../core/model/caller.ts";
import type { Log } from "../../../core/model/ports.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import type { ServedAgentService } from "../../../core/server/agent-service.ts";
import { etagOf, matchesEtag } from "../../../core/server/cards/card-documents.ts";
import { systemTools } from "../../../core/server/clock-and-ids.ts";
import type { RemoteCredentials } from "../../../core/server/config/credentials.ts";
import { createLogin } from "../../../core/server/outbound.ts";
import { type FullReply, jsonReply, type RequestHead } from "../../../core/wire/exchange.ts";
import { isLoopback } from "../../../core/wire/loopback.ts";
import { createCardSource, MAX_CARD_BYTES, type TrustOptions } from "../card-source.ts";
import { REGISTRY_MEDIA_TYPE, toCatalogEntry } from "../catalog.ts";
import { createRegistryClient } from "../client/registry-client.ts";
import { type RegistryEntry, serverEntryId, toPublisher, type Visibility } from "../entry.ts";
import { createFederatedSearch } from "../federate.ts";
import { DEFAULT_REGISTRY_TIMES } from "../health.ts";
import { DEFAULT_REGISTRY_LIMITS, Registry, type RegistryLimits } from "../registry.ts";
import { type Announcement, announce } from "./announce.ts";
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
type RegistryTarget = string | { readonly url: string; readonly credentials?: CredentialProvider | RemoteCredentials };

const CATALOG_PATH = "/.well-known/ai-catalog.json";
/** Entries of the catalog at most; there may be more in the registry, which it refers to. */
const MAX_CATALOG = 1_000;
const MAX_PEER_BYTES = 4 * 1024 * 1024;
const MAX_REDIRECTS = 3;
const FETCH_TIMEOUT_MS = 10_000;

/** The registry of a server. Starting it reads what is stored. */
export async function openRegistry(options: RegistryServeOptions, parts: ServerHost): Promise<ServerPart> {
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
  return {
    serving: createRegistryRoutes({ ...parts, maxWatches: parts.streamsPerOwner, registry, search, source }),
    routes: new Map([[CATALOG_PATH, createCatalogRoute(registry, parts, own.list)]]),
    find: createFindAgents(registry, search),
    allowsPrivateTargets: options.allowPrivateTargets,
    metrics: () => renderCounts(registry.countByHealth()),
    start: () => registry.open(),
    listening: (agents) => announceAll(options, agents, log),
    close: () => registry.close(),
  };
}

function renderCounts(counts: Readonly<Record<string, number>>): string {
  const lines = Object.entries(counts).map(
    ([health, count]) => `dragoman_registry_agents{health="${health}"} ${count}\n`,
  );
  return `# HELP dragoman_registry_agents Agents in the registry.\n# TYPE dragoman_registry_agents gauge\n${lines.join("")}`;
}

/** Registers the agents that this server lists at the registries that the options name. */
function announceAll(
  { registerWith = [], unlisted = [] }: RegistryServeOptions,
  agents: Parameters<NonNullable<ServerPart["listening"]>>[0],
  log: Log,
): readonly Announcement[] {
  const listed = agents.filter(({ name }) => !unlisted.includes(name));
  return registerWith.map((target) => {
    const { url, credentials = undefined } = typeof target === "string" ? { url: target } : target;
    const provider = credentials && toProvider(credentials, url);
    // The announcement repeats what fails by itself.
    const retry = { attempts: 1, baseMs: 0, capMs: 0 };
    const registry = createRegistryClient(url, { ...(provider && { credentials: provider }), retry });
    return announce({ ...systemTools, url, registry, agents: listed, log });
  });
}

function toProvider(credentials: CredentialProvider | RemoteCredentials, url: string): CredentialProvider | undefined {
  if ("headersFor" in credentials) return credentials;
  return createLogin(credentials, isLoopback(new URL(url).hostname)).provider;
}

async function readKeys(files: readonly string[]) {
  const keys = files.map(async (file) => parsePublicKeys(await readFile(file, "utf8"), `The file ${file}`));
  return (await Promise.all(keys)).flat();
}

function createServerEntries(unlisted: readonly string[], parts: ServerHost) {
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
function createCatalogRoute(registry: Registry, { baseUrl, isOpen }: ServerHost, own: () => readonly RegistryEntry[]) {
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
