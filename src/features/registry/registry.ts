import { invalidParams, ProtocolError } from "../../core/model/errors.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import type { CardSource, ReadCard } from "./card-source.ts";
import type { Change, RegistryRecords } from "./changes.ts";
import { Entries } from "./entries.ts";
import { entryId, type Health, identifierOf, type RegistryEntry, type Visibility } from "./entry.ts";
import { ageOf, type RegistryTimes } from "./health.ts";
import {
  decodePageToken,
  digestOf,
  type ExploreRequest,
  encodePageToken,
  invalidPageToken,
  type ListRequest,
  type Query,
  type Registration,
} from "./query.ts";
import { type EntryChange, Refresh } from "./refresh.ts";
import { countFacets, type Facets } from "./search/facets.ts";
import { type Listed, NO_FILTER, type OrderField } from "./search/listed.ts";

export interface RegistryLimits {
  readonly agentsPerOwner: number;
  readonly agents: number;
}

export const DEFAULT_REGISTRY_LIMITS: RegistryLimits = { agentsPerOwner: 10_000, agents: 200_000 };

export interface RegistryOptions {
  readonly records: RegistryRecords;
  readonly cards: CardSource;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly limits: RegistryLimits;
  readonly times: RegistryTimes;
  /** Of agents that are registered without one. */
  readonly visibility: Visibility;
  /** The agents of this server, each the same object until its card changes. */
  readonly serverEntries: () => readonly RegistryEntry[];
  /** The agent of this server whose card is at a URL. */
  readonly serverEntryAt: (url: string) => RegistryEntry | undefined;
}

export interface Found {
  readonly entry: RegistryEntry;
  /** Relevance between 0 and 1. */
  readonly score: number;
}

export interface RankedPosition {
  readonly score: number;
  readonly id: string;
}

/** A card that was sent or fetched. */
type CardToRegister = ReadCard & { readonly url?: string; readonly etag?: string };

const RETRY_MS = 2_000;

/** Agents of this server and of others, found by what they can do. `owner` is who asks. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #entries: Entries;
  readonly #refresh: Refresh;
  /** Registrations under way, by owner. */
  readonly #pending = new Map<string, number>();
  #opening: Promise<void> = Promise.resolve();
  #cancelOpening: (() => void) | undefined;
  #closed = false;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#entries = new Entries({
      ...options,
      onChange: (entry, how) => this.#refresh.schedule(entry, how),
      onRemove: (id) => this.#refresh.forget(id),
    });
    this.#refresh = new Refresh({
      ...options,
      read: (id) => this.#entries.read(id),
      change: (id, change) => this.#entries.change(id, (before) => before && change(before)),
      remove: (entry) => this.#remove(entry, "A registered agent is gone."),
    });
  }

  /** Starts to read what is stored; every request waits for that. */
  open(): void {
    this.#opening = this.#entries.open().then(
      () => {
        if (!this.#closed) this.#refresh.start();
      },
      (error: unknown) => {
        if (this.#closed) return;
        const { clock, log } = this.#options;
        log.error({ err: error }, "The registry could not be read from the store; trying again.");
        this.#cancelOpening = clock.after(RETRY_MS, () => this.open());
      },
    );
  }

  /** Resolves when nothing more is read from the store, so that the store can be closed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelOpening?.();
    this.#refresh.stop();
    this.#entries.close();
    await this.#opening;
  }

  /** Registers an agent, or replaces what its owner had registered before. */
  async register(owner: string, registration: Registration): Promise<{ entry: RegistryEntry; created: boolean }> {
    await this.#entries.ready();
    const { source } = registration;
    const own = "url" in source ? this.#options.serverEntryAt(source.url) : undefined;
    if (own !== undefined) return { entry: await this.get(owner, own.id), created: false };
    if ("url" in source) this.#checkQuotaOfNew(owner, source.url);
    const pending = (this.#pending.get(owner) ?? 0) + 1;
    this.#pending.set(owner, pending);
    try {
      const read = await this.#readCard(source);
      if (registration.probe) await this.#options.cards.probe(read.card);
      const id = entryId(owner, read.url === undefined ? { card: read.card } : { url: read.url });
      if (read.url === undefined) this.#checkIdentifier(owner, id, read.card);
      const isNew = this.#entries.index.get(id) === undefined;
      if (isNew) this.#checkQuota(owner, (this.#pending.get(owner) ?? 1) - 1);
      let created = false;
      const toEntry = (before: RegistryEntry | undefined) => {
        created = before === undefined;
        return this.#toEntry(id, owner, registration, read, before);
      };
      const entry = await this.#entries.change(id, toEntry, { isNew });
      const message = created ? "An agent is registered." : "An agent is registered again.";
      this.#options.log.info({ id, agent: read.card.name, owner, url: read.url }, message);
      return { entry: entry as RegistryEntry, created };
    } finally {
      const left = (this.#pending.get(owner) ?? 1) - 1;
      if (left === 0) this.#pending.delete(owner);
      else this.#pending.set(owner, left);
    }
  }

  /** Nothing is fetched for an owner that has too many agents. */
  #checkQuotaOfNew(owner: string, url: string): void {
    const known = this.#options.cards
      .candidates(url)
      .some((candidate) => this.#entries.index.get(entryId(owner, { url: candidate })) !== undefined);
    if (!known) this.#checkQuota(owner, this.#pending.get(owner) ?? 0);
  }

  /** A card that is sent may name any address; one that is fetched is at least at the host of its identifier. */
  #checkIdentifier(owner: string, id: string, card: ReadCard["card"]): void {
    const identifier = identifierOf({ card, id, source: "inline" });
    const filter = { terms: [{ field: "identifier", values: [identifier] }] } as const;
    const isOther = (listed: Listed) => listed.visibility === "public" && listed.owner !== owner;
    const order = { field: "displayName", descending: false } as const;
    if (this.#entries.index.list(filter, isOther, order, 1, undefined).items.length === 0) return;
    throw invalidParams("card", `its identifier ${identifier} is that of an agent that someone else has registered`);
  }

  #checkQuota(owner: string, pending: number): void {
    const { agents, agentsPerOwner } = this.#options.limits;
    if (this.#entries.ownedBy(owner) + pending >= agentsPerOwner) {
      throw exhausted(`You have ${agentsPerOwner} agents registered, which is the maximum.`);
    }
    if (this.#entries.index.size + pending >= agents) {
      throw exhausted(`The registry has ${agents} agents, which is the maximum.`);
    }
  }

  async #readCard(source: Registration["source"]): Promise<CardToRegister> {
    const { cards } = this.#options;
    if ("card" in source) return cards.readInline(source.card);
    const fetched = await cards.fetch(source.url);
    if (fetched === "unchanged") throw new ProtocolError("INTERNAL_ERROR", "A card without an ETag was not changed.");
    return fetched;
  }

  /** Registering again also confirms an identity that was held back: only the owner can do it. */
  #toEntry(
    id: string,
    owner: string,
    { visibility, ttlMs, probe }: Registration,
    { card, document, text, signature, findings, url, etag }: CardToRegister,
    before: RegistryEntry | undefined,
  ): EntryChange {
    const now = this.#options.clock.now();
    const cardText = JSON.stringify(card);
    const isSameCard = before !== undefined && JSON.stringify(before.card) === cardText;
    const isOther = url === undefined && text !== cardText;
    const entry: RegistryEntry = {
      id,
      owner,
      visibility: visibility ?? before?.visibility ?? this.#options.visibility,
      source: url === undefined ? "inline" : "url",
      card,
      probe,
      health: "unknown",
      createdAt: before?.createdAt ?? now,
      updatedAt: before === undefined ? now : isSameCard ? before.updatedAt : Math.max(now, before.updatedAt + 1),
      checkedAt: now,
      failures: 0,
      signature,
      findings,
      url,
      etag,
      ttlMs,
      expiresAt: ttlMs === undefined ? undefined : now + ttlMs,
      document: isOther ? document : undefined,
    };
    const healthy = this.#withHealth(entry);
    if (before === undefined) return { entry: healthy, kind: "registered" };
    const isNews =
      !isSameCard ||
      before.health !== healthy.health ||
      before.visibility !== healthy.visibility ||
      before.heldBack !== undefined;
    return { entry: healthy, before, kind: isNews ? ("updated" as const) : undefined };
  }

  /** For an entry that was heard of just now. */
  #withHealth(entry: RegistryEntry): RegistryEntry {
    const now = this.#options.clock.now();
    const age = ageOf(entry, now, now, this.#options.times);
    return { ...entry, health: age === "gone" ? "dead" : age };
  }

  /** When the entry expires; undefined if it does not. */
  async heartbeat(owner: string, id: string): Promise<number | undefined> {
    await this.#requireOwned(owner, id);
    const entry = await this.#entries.change(id, (before) => {
      if (before?.ttlMs === undefined) return undefined;
      const alive = this.#withHealth({ ...before, expiresAt: this.#options.clock.now() + before.ttlMs });
      return { entry: alive, kind: alive.health !== before.health ? ("updated" as const) : undefined };
    });
    if (entry === undefined) throw agentNotFound();
    return entry.expiresAt;
  }

  async remove(owner: string, id: string): Promise<void> {
    await this.#remove(await this.#requireOwned(owner, id), "An agent is removed from the registry.");
  }

  async #remove(entry: RegistryEntry, message: string): Promise<void> {
    await this.#entries.remove(entry);
    this.#options.log.info({ id: entry.id, agent: entry.card.name, owner: entry.owner }, message);
  }

  async #requireOwned(owner: string, id: string): Promise<RegistryEntry> {
    const entry = await this.get(owner, id);
    if (entry.source === "server") throw forbidden("This agent belongs to the server itself.");
    if (entry.owner !== owner) throw forbidden("Another owner has registered this agent.");
    return entry;
  }

  /** Throws if there is none that the owner may see. */
  async get(owner: string, id: string): Promise<RegistryEntry> {
    await this.#entries.ready();
    const entry = await this.#entries.read(id);
    if (entry === undefined || !canSee(owner, entry)) throw agentNotFound();
    return entry;
  }

  async list(owner: string, { filter, order, pageSize, pageToken }: ListRequest) {
    await this.#entries.ready();
    const digest = digestOf("list", owner, filter, order);
    const after = pageToken === undefined ? undefined : toListPosition(decodePageToken(pageToken, digest), order.field);
    const page = this.#entries.index.list(filter, (listed) => canSee(owner, listed), order, pageSize, after);
    const { entries, last } = await this.#entries.readAll(page.items);
    const hasMore = page.hasMore || last !== page.items.at(-1);
    const isWhole = filter.terms.length === 0 && filter.createdAfter === undefined && filter.updatedAfter === undefined;
    return {
      entries,
      total: isWhole ? this.#entries.visibleTo(owner) : undefined,
      pageToken: hasMore && last ? encodePageToken(digest, { k: last[SORT_KEYS[order.field]], i: last.id }) : undefined,
    };
  }

  /** The best matches in this registry after a position. */
  async search(
    owner: string,
    { text, filter }: Query & { readonly text: string },
    size: number,
    after?: RankedPosition,
  ): Promise<{ readonly found: readonly Found[]; readonly hasMore: boolean }> {
    await this.#entries.ready();
    const page = this.#entries.index.search(text, filter, (listed) => canSee(owner, listed), { size, after });
    if (page === undefined) return { found: [], hasMore: false };
    const { entries, last } = await this.#entries.readAll(page.items.map(({ listed }) => listed));
    const scores = new Map(page.items.map(({ listed, score }) => [listed.id, score]));
    const found = entries.map((entry) => ({ entry, score: scores.get(entry.id) ?? 0 }));
    return { found, hasMore: page.hasMore || last !== page.items.at(-1)?.listed };
  }

  async explore(owner: string, { query, facets }: ExploreRequest): Promise<Facets> {
    await this.#entries.ready();
    const visible = (listed: Listed) => canSee(owner, listed);
    return countFacets(this.#entries.index.matching(query.text, query.filter, visible) ?? [], facets);
  }

  /** Changes that the owner may see, after a number or from now on. `reset`: some in between are no longer known. */
  async watch(owner: string, after: number | undefined) {
    await this.#entries.ready();
    const { changes } = this.#entries;
    const isReset = after !== undefined && !changes.canContinue(after);
    const from = after === undefined || isReset ? changes.last : after;
    return {
      from,
      reset: isReset ? { oldest: changes.floor } : undefined,
      changes: changes.follow(from),
      toVisible: (change: Change) => toVisible(owner, change),
    };
  }

  /** What an owner may see, the agents of the server first. */
  async catalog(owner: string, most: number): Promise<readonly RegistryEntry[]> {
    await this.#entries.ready();
    const own = this.#entries.ofServer.filter(({ visibility }) => visibility === "public");
    const ids = new Set(own.map(({ id }) => id));
    const isOther = (listed: Listed) => !ids.has(listed.id) && canSee(owner, listed);
    const order = { field: "displayName", descending: false } as const;
    const others = this.#entries.index.list(NO_FILTER, isOther, order, Math.max(0, most - own.length), undefined);
    return [...own, ...(await this.#entries.readAll(others.items)).entries];
  }

  /** Changes with every registration and every change of a card. */
  get version(): number {
    return this.#entries.changes.last;
  }

  countByHealth(): Readonly<Record<Health, number>> {
    return this.#entries.countByHealth();
  }
}

function canSee(owner: string, entry: Pick<RegistryEntry, "owner" | "visibility">): boolean {
  return entry.visibility === "public" || entry.owner === owner;
}

/** For others than its owner, an agent comes and goes with its visibility. */
function toVisible(owner: string, change: Change): Change | undefined {
  const { visibilityBefore = change.visibility } = change;
  if (change.owner === owner || change.visibility === visibilityBefore) {
    return canSee(owner, change) ? change : undefined;
  }
  return { ...change, kind: change.visibility === "public" ? "registered" : "removed" };
}

/** The same for one that does not exist and one that the caller may not see. */
function agentNotFound(): ProtocolError {
  return new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
}

function forbidden(message: string): ProtocolError {
  return new ProtocolError("PERMISSION_DENIED", message);
}

function exhausted(message: string): ProtocolError {
  return new ProtocolError("RESOURCE_EXHAUSTED", message, { retryAfter: 60 });
}

function toListPosition({ k, i }: Readonly<Record<string, unknown>>, field: OrderField) {
  const isKey = field === "displayName" ? typeof k === "string" : typeof k === "number";
  if (!isKey || typeof i !== "string") throw invalidPageToken();
  return { id: i, [SORT_KEYS[field]]: k };
}

const SORT_KEYS = {
  displayName: "sortName",
  createdAt: "createdAt",
  updatedAt: "updatedAt",
} as const satisfies Record<OrderField, keyof Listed>;
