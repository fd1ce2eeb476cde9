import { identityChanges, identityOf } from "../../core/client/registry-identity.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import type { CardSource, FetchedCard } from "./card-source.ts";
import type { ChangeKind } from "./changes.ts";
import type { RegistryEntry } from "./entry.ts";
import { ageOf, isChecked, nextAgeAt, nextCheckAt, type RegistryTimes } from "./health.ts";

export interface EntryChange {
  readonly entry: RegistryEntry;
  /** What watchers are told; absent: nothing. */
  readonly kind?: ChangeKind | undefined;
  /** Where who may see it may have changed. */
  readonly before?: RegistryEntry;
}

export interface RefreshOptions {
  readonly cards: CardSource;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly times: RegistryTimes;
  /** The stored entry; undefined if it is gone. */
  readonly read: (id: string) => Promise<RegistryEntry | undefined>;
  /** Replaces the stored entry, if there is one, by what the function makes of it; undefined: by nothing else. */
  readonly change: (id: string, change: (before: RegistryEntry) => EntryChange | undefined) => Promise<unknown>;
  readonly remove: (entry: RegistryEntry) => Promise<void>;
}

const TICK_MS = 1_000;
const MAX_CONCURRENT = 8;
/** After a start, checks that are due are spread over this time. */
const START_SPREAD_MS = 60_000;

/** Keeps entries up to date: reads their cards again, and marks those that are not heard of. */
export class Refresh {
  readonly #options: RefreshOptions;
  /** The last heartbeat of each entry that has to send some, by when it ends, and when this process learnt of it. */
  readonly #heartbeats = new Map<string, { readonly expiresAt: number | undefined; readonly at: number }>();
  /** Ids by the second in which they are due. */
  readonly #buckets = new Map<number, string[]>();
  readonly #dueSecond = new Map<string, number>();
  readonly #waiting: string[] = [];
  #running = 0;
  #second: number;
  #stopTimer: (() => void) | undefined;

  constructor(options: RefreshOptions) {
    this.#options = options;
    this.#second = Math.floor(options.clock.now() / TICK_MS);
  }

  start(): void {
    this.#stopTimer = this.#options.clock.after(TICK_MS, () => {
      this.#tick();
      this.start();
    });
  }

  stop(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#waiting.length = 0;
    this.#buckets.clear();
  }

  /** Notes when an entry has to be looked at; called whenever it has changed. */
  schedule(entry: RegistryEntry, { atStart = false } = {}): void {
    const { clock, random, times } = this.#options;
    const now = clock.now();
    const check = nextCheckAt(entry, times, random());
    const spread = atStart && check !== undefined ? Math.max(check, now + random() * START_SPREAD_MS) : check;
    const age = nextAgeAt(entry, now, this.#heartbeatAt(entry), times);
    const due = Math.min(spread ?? Number.POSITIVE_INFINITY, age ?? Number.POSITIVE_INFINITY);
    if (due === Number.POSITIVE_INFINITY) {
      this.#dueSecond.delete(entry.id);
      return;
    }
    const second = Math.max(Math.ceil(due / TICK_MS), this.#second + 1);
    if (this.#dueSecond.get(entry.id) === second) return;
    this.#dueSecond.set(entry.id, second);
    const bucket = this.#buckets.get(second);
    if (bucket === undefined) this.#buckets.set(second, [entry.id]);
    else bucket.push(entry.id);
  }

  forget(id: string): void {
    this.#dueSecond.delete(id);
    this.#heartbeats.delete(id);
  }

  #heartbeatAt({ expiresAt, id, ttlMs }: RegistryEntry): number {
    const known = this.#heartbeats.get(id);
    if (known !== undefined && known.expiresAt === expiresAt) return known.at;
    const at = this.#options.clock.now();
    if (ttlMs !== undefined) this.#heartbeats.set(id, { expiresAt, at });
    return at;
  }

  #tick(): void {
    const now = Math.floor(this.#options.clock.now() / TICK_MS);
    // A machine that slept has many seconds to make up for, and few entries are due in each.
    const seconds = now - this.#second > this.#buckets.size ? [...this.#buckets.keys()] : range(this.#second + 1, now);
    for (const second of seconds) {
      if (second > now) continue;
      for (const id of this.#buckets.get(second) ?? []) if (this.#dueSecond.get(id) === second) this.#waiting.push(id);
      this.#buckets.delete(second);
    }
    this.#second = Math.max(this.#second, now);
    this.#work();
  }

  #work(): void {
    while (this.#running < MAX_CONCURRENT) {
      const id = this.#waiting.shift();
      if (id === undefined) return;
      this.#running++;
      this.#examine(id)
        .catch((error: unknown) => this.#options.log.warn({ err: error, id }, "An entry could not be refreshed."))
        .finally(() => {
          this.#running--;
          this.#work();
        });
    }
  }

  async #examine(id: string): Promise<void> {
    const { clock, read, remove, times } = this.#options;
    const entry = await read(id);
    if (entry === undefined) {
      this.forget(id);
      return;
    }
    const now = clock.now();
    const age = ageOf(entry, now, this.#heartbeatAt(entry), times);
    if (age === "gone") {
      this.forget(id);
      await remove(entry);
      return;
    }
    const check = nextCheckAt(entry, times, 0);
    if (check !== undefined && check <= now) await this.check(entry);
    else if (age !== entry.health) await this.#change(entry.id, (before) => before);
    else this.schedule(entry);
  }

  /** Reads the card of an entry again, and calls the agent where that is asked for. */
  async check(entry: RegistryEntry): Promise<void> {
    const { cards } = this.#options;
    if (!isChecked(entry)) return;
    try {
      const { url } = entry;
      const fetched = url === undefined ? "unchanged" : await cards.fetch(url, entry.etag);
      if (entry.probe) await cards.probe(fetched === "unchanged" ? entry.card : fetched.card);
      await this.#change(entry.id, (before) => withCard(withoutProblem(before), fetched, this.#options.clock.now()));
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
      await this.#change(entry.id, (before) => withProblem(before, error.message, this.#options.clock.now()));
    }
  }

  /** The same entry means that only its health may have changed. */
  #change(id: string, change: (before: RegistryEntry) => RegistryEntry): Promise<unknown> {
    const { clock, log, times } = this.#options;
    return this.#options.change(id, (before) => {
      const changed = change(before);
      const age = ageOf(changed, clock.now(), this.#heartbeatAt(changed), times);
      const entry = { ...changed, health: age === "gone" ? "dead" : age };
      const about = { id, agent: entry.card.name, owner: entry.owner };
      if (entry.heldBack !== undefined && before.heldBack === undefined) {
        log.warn({ ...about, changes: entry.heldBack.changes }, "A card has changed its identity and is held back.");
      }
      if (entry.health === "stale" && before.health !== "stale") {
        log.info({ ...about, problem: entry.problem }, "A registered agent is stale.");
        return { entry, kind: "stale" };
      }
      const isNews =
        entry.health !== before.health ||
        entry.updatedAt !== before.updatedAt ||
        (entry.heldBack === undefined) !== (before.heldBack === undefined);
      return { entry, kind: isNews ? ("updated" as const) : undefined };
    });
  }
}

function withoutProblem(before: RegistryEntry): RegistryEntry {
  const { failingSince, problem, ...rest } = before;
  return { ...rest, failures: 0 };
}

function withProblem(before: RegistryEntry, problem: string, now: number): RegistryEntry {
  const { failures, failingSince = now } = before;
  return { ...before, failures: failures + 1, failingSince, problem, checkedAt: now };
}

/** A card of another identity is not shown; the one before stays until the owner registers the agent again. */
function withCard(before: RegistryEntry, fetched: FetchedCard | "unchanged", now: number): RegistryEntry {
  const checked = { ...before, checkedAt: now };
  if (fetched === "unchanged") {
    // The ETag is that of the card that is shown: the agent is itself again.
    const { heldBack: _, ...same } = checked;
    return same;
  }
  const changes = identityChanges(identityOf(before.card), identityOf(fetched.card));
  if (changes.length > 0) return { ...checked, heldBack: { since: before.heldBack?.since ?? now, changes } };
  const { heldBack, etag: _, ...rest } = checked;
  const { card, signature, findings, etag } = fetched;
  const isSame = JSON.stringify(card) === JSON.stringify(before.card);
  const updatedAt = isSame ? before.updatedAt : Math.max(now, before.updatedAt + 1);
  return { ...rest, card, signature, findings, updatedAt, etag };
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
}
