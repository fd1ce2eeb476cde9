import { isObject } from "../../core/model/json.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import { ChangeLog, type RegistryRecords } from "./changes.ts";
import { HEALTHS, type Health, type RegistryEntry } from "./entry.ts";
import type { EntryChange } from "./refresh.ts";
import type { Listed } from "./search/listed.ts";
import { SearchIndex } from "./search/search-index.ts";

export interface EntriesOptions {
  readonly records: RegistryRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** The agents of this server, each the same object until its card changes. Not stored. */
  readonly serverEntries: () => readonly RegistryEntry[];
  /** Called with every entry that was read at the start or has changed since. */
  readonly onChange: (entry: RegistryEntry, how: { readonly atStart: boolean }) => void;
  readonly onRemove: (id: string) => void;
}

const SPACE = "registry";
/** Entries that are read at a time when a server starts; others are served in between. */
const LOAD_PAGE = 200;
/** A page of large inline cards ends earlier. */
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024;
const MAX_ID_LENGTH = 128;
const SYNC_MS = 2_000;

/** The entries of a registry. The store has the truth; in memory there is an index, which follows other nodes. */
export class Entries {
  readonly index = new SearchIndex();
  readonly changes: ChangeLog;
  readonly #options: EntriesOptions;
  readonly #serverEntries = new Map<string, RegistryEntry>();
  /** Stored entries by owner, and those of them that are public. */
  readonly #owned = new Map<string, { all: number; public: number }>();
  #public = 0;
  #loaded: Promise<void> | undefined;
  #stopSync: (() => void) | undefined;
  #closed = false;

  constructor(options: EntriesOptions) {
    this.#options = options;
    this.changes = new ChangeLog(options.records, options.clock);
  }

  /** Resolves when all that is stored was read. */
  open(): Promise<void> {
    this.#loaded ??= this.#load().catch((error: unknown) => {
      // The store may be there again for the next one who asks.
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  close(): void {
    this.#closed = true;
    this.#stopSync?.();
    this.changes.close();
  }

  async #load(): Promise<void> {
    const { records, log, onChange } = this.#options;
    await this.changes.open();
    for (let after: string | undefined; !this.#closed; ) {
      const page = await records.records(SPACE, { limit: LOAD_PAGE, after });
      for (const { value } of page) {
        const entry = parseEntry(value);
        if (entry === undefined) continue;
        this.#take(entry);
        onChange(entry, { atStart: true });
      }
      after = page.at(-1)?.key;
      if (page.length < LOAD_PAGE) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (this.index.size > 0) log.info({ agents: this.index.size }, "The registry was read from the store.");
    this.#scheduleSync();
  }

  #scheduleSync(): void {
    const { clock, log } = this.#options;
    if (this.#closed) return;
    this.#stopSync = clock.after(SYNC_MS, () => {
      this.#followOthers()
        .catch((error: unknown) => {
          if (!this.#closed) log.warn({ err: error }, "Changes of the registry could not be read.");
        })
        .finally(() => this.#scheduleSync());
    });
  }

  /** What other nodes of the same store have changed. */
  async #followOthers(): Promise<void> {
    if (this.#closed) return;
    for (const { id } of await this.changes.readNew()) {
      const entry = await this.read(id);
      if (entry === undefined) this.#drop(id);
      else {
        this.#take(entry);
        this.#options.onChange(entry, { atStart: false });
      }
    }
  }

  /** To be awaited before anything is read: the agents of the server are as they are now. */
  async ready(): Promise<void> {
    await this.open();
    for (const entry of this.#options.serverEntries()) {
      const known = this.#serverEntries.get(entry.id);
      if (known === entry) continue;
      this.#serverEntries.set(entry.id, entry);
      this.index.put(entry);
      if (known === undefined) continue;
      void this.changes
        .prepare()
        .then(() => this.changes.append("updated", entry))
        .catch(() => {});
    }
  }

  get ofServer(): readonly RegistryEntry[] {
    return [...this.#serverEntries.values()];
  }

  /** Stored entries of an owner. */
  ownedBy(owner: string): number {
    return this.#owned.get(owner)?.all ?? 0;
  }

  /** Entries that an owner may see. */
  visibleTo(owner: string): number {
    const owned = this.#owned.get(owner);
    const ofServer = this.ofServer.filter(({ visibility }) => visibility === "public").length;
    return ofServer + this.#public + (owned === undefined ? 0 : owned.all - owned.public);
  }

  countByHealth(): Readonly<Record<Health, number>> {
    const counts = Object.fromEntries(HEALTHS.map((health) => [health, 0])) as Record<Health, number>;
    for (const { health } of this.index.values()) counts[health]++;
    return counts;
  }

  async read(id: string): Promise<RegistryEntry | undefined> {
    if (id.length > MAX_ID_LENGTH) return undefined;
    const own = this.#serverEntries.get(id);
    if (own !== undefined) return own;
    const text = await this.#options.records.record(SPACE, id);
    return text === undefined ? undefined : parseEntry(text);
  }

  /** In the order of the list; ends early if they are large. `last` is the last one that was read. */
  async readAll(items: readonly Listed[]): Promise<{ entries: readonly RegistryEntry[]; last: Listed | undefined }> {
    const entries: RegistryEntry[] = [];
    let characters = 0;
    let last: Listed | undefined;
    for (const listed of items) {
      const own = this.#serverEntries.get(listed.id);
      const text = own === undefined ? await this.#options.records.record(SPACE, listed.id) : undefined;
      const entry = own ?? (text === undefined ? undefined : parseEntry(text));
      if (entry !== undefined) entries.push(entry);
      last = listed;
      characters += text?.length ?? 0;
      if (characters > MAX_PAGE_CHARACTERS) break;
    }
    return { entries, last };
  }

  /**
   * Reads, changes and writes, again if another writer came between. Returns what is stored then. `isNew`: there is
   * probably nothing to read.
   */
  async change(
    id: string,
    change: (before: RegistryEntry | undefined) => EntryChange | undefined,
    { isNew = false } = {},
  ): Promise<RegistryEntry | undefined> {
    const { records, onChange } = this.#options;
    for (let isFirst = true; ; isFirst = false) {
      const text = isFirst && isNew ? undefined : await records.record(SPACE, id);
      const before = text === undefined ? undefined : parseEntry(text);
      const changed = change(before);
      if (changed === undefined) return before;
      const { entry, kind } = changed;
      if (kind !== undefined) await this.changes.prepare();
      // Both in one commit. A change that is told although another writer was first does no harm.
      const [written] = await Promise.all([
        records.put({ space: SPACE, key: id, value: JSON.stringify(entry), ifValue: text ?? null }),
        kind === undefined ? undefined : this.changes.append(kind, entry, changed.before?.visibility),
      ]);
      if (!written) continue;
      this.#take(entry);
      onChange(entry, { atStart: false });
      return entry;
    }
  }

  async remove(entry: RegistryEntry): Promise<void> {
    await this.changes.prepare();
    await Promise.all([this.#options.records.delete(SPACE, entry.id), this.changes.append("removed", entry)]);
    this.#drop(entry.id);
  }

  #take(entry: RegistryEntry): void {
    this.#count(this.index.get(entry.id), -1);
    this.#count(this.index.put(entry), 1);
  }

  #drop(id: string): void {
    this.#count(this.index.get(id), -1);
    this.index.remove(id);
    this.#options.onRemove(id);
  }

  #count(listed: Listed | undefined, by: number): void {
    if (listed === undefined) return;
    const owned = this.#owned.get(listed.owner) ?? { all: 0, public: 0 };
    const shown = listed.visibility === "public" ? by : 0;
    owned.all += by;
    owned.public += shown;
    this.#public += shown;
    if (owned.all === 0) this.#owned.delete(listed.owner);
    else this.#owned.set(listed.owner, owned);
  }
}

/** Undefined for a record that is damaged. */
function parseEntry(text: string): RegistryEntry | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && typeof value.id === "string" && isObject(value.card)
      ? (value as object as RegistryEntry)
      : undefined;
  } catch {
    return undefined;
  }
}
