/** A map of few, small values that rarely change: in memory, and in one file if they should survive the process. */

import { open, readFile, rename } from "node:fs/promises";
import type { PersistentMap } from "../../dialects/xiaoyi/ports.ts";
import { hasErrorCode } from "../../model/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";

export class FileBackedMap<V extends JsonValue> {
  readonly #file: string | undefined;
  readonly #maxSize: number;
  readonly #log: Log;
  readonly #synced: boolean;
  #loading: Promise<Map<string, V>> | undefined;
  readonly #changes = new Set<Promise<void>>();
  #writing: Promise<void> = Promise.resolve();
  /** A scheduled write that has not begun yet, and so will include all changes until then. */
  #nextWrite: Promise<void> | undefined;

  /**
   * Beyond the maximum size, the oldest entries are evicted. `synced`: survives a power failure, for values that rarely
   * change.
   */
  constructor(
    file: string | undefined,
    maxSize: number,
    log: Log,
    { synced = false }: { readonly synced?: boolean } = {},
  ) {
    this.#file = file;
    this.#maxSize = maxSize;
    this.#log = log;
    this.#synced = synced;
  }

  async get(key: string): Promise<V | undefined> {
    return (await this.#loaded()).get(key);
  }

  async entries(): Promise<readonly (readonly [string, V])[]> {
    return [...(await this.#loaded())];
  }

  /** Resolves when the value is stored. Setting a key again makes it the newest. */
  async set(key: string, value: V): Promise<void> {
    await this.update(key, () => value);
  }

  /** Like `set`, computed atomically from the current value. Returning the current value means no change. */
  update(key: string, change: (before: V | undefined) => V): Promise<void> {
    return this.#change((map) => {
      const before = map.get(key);
      const after = change(before);
      if (after === before) return false;
      map.delete(key);
      map.set(key, after);
      for (const oldest of map.keys()) {
        if (map.size <= this.#maxSize) break;
        map.delete(oldest);
      }
      return true;
    });
  }

  delete(key: string): Promise<void> {
    return this.#change((map) => map.delete(key));
  }

  /** Resolves when earlier changes were written, or failed to be. */
  async flush(): Promise<void> {
    await Promise.allSettled(this.#changes);
  }

  /** `apply` returns whether anything changed. */
  #change(apply: (map: Map<string, V>) => boolean): Promise<void> {
    const changed = this.#loaded().then((map) => (apply(map) ? this.#save(map) : undefined));
    this.#changes.add(changed);
    const forget = (): void => void this.#changes.delete(changed);
    changed.then(forget, forget);
    return changed;
  }

  #loaded(): Promise<Map<string, V>> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<Map<string, V>> {
    if (this.#file === undefined) return new Map();
    try {
      const text = await readFile(this.#file, "utf8");
      return readEntries<V>(text) ?? (await this.#putAside(this.#file));
    } catch (error) {
      if (hasErrorCode(error, "ENOENT")) return new Map();
      this.#loading = undefined;
      throw error;
    }
  }

  /** A damaged file is unusable, but the operator may want to recover data from it. */
  async #putAside(file: string): Promise<Map<string, V>> {
    const aside = `${file}.damaged`;
    await rename(file, aside);
    this.#log.error(
      { file: aside },
      "A file beside the store was damaged. It is put aside, and what it held is forgotten.",
    );
    return new Map();
  }

  /** One write at a time; a failed write does not affect the next. */
  #save(map: ReadonlyMap<string, V>): Promise<void> {
    this.#nextWrite ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#nextWrite = undefined;
        this.#writing = this.#write(map);
        return this.#writing;
      });
    return this.#nextWrite;
  }

  /** Atomic: a crash leaves either the old or the new file. Readable by the owner only. */
  async #write(map: ReadonlyMap<string, V>): Promise<void> {
    if (this.#file === undefined) return;
    const next = `${this.#file}.new`;
    const file = await open(next, "w", 0o600);
    try {
      await file.writeFile(JSON.stringify([...map]));
      // A rename may reach the disk before the file's content does.
      if (this.#synced) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(next, this.#file);
  }
}

function readEntries<V>(text: string): Map<string, V> | undefined {
  try {
    return new Map(JSON.parse(text) as [string, V][]);
  } catch {
    return undefined;
  }
}

/** Maps of several scopes, in one file. */

/** The whole file is written on each change; the oldest entries are evicted. */
const MAX_ENTRIES = 5_000;
/** No known ids are longer; this bounds the size of the file. */
const MAX_ID_LENGTH = 512;

export class ScopedFileMap {
  readonly #map: FileBackedMap<string>;
  readonly #log: Log;

  /** Without a file, entries last as long as the process. */
  constructor(file: string | undefined, log: Log) {
    this.#map = new FileBackedMap(file, MAX_ENTRIES, log);
    this.#log = log;
  }

  /** The entries of one scope; scopes do not see each other's entries. */
  scope(...names: readonly string[]): PersistentMap {
    const scope = JSON.stringify(names);
    const keyOf = (id: string) => JSON.stringify([scope, id]);
    return {
      entries: async () => {
        const entries = await this.#map.entries().catch((error: unknown) => {
          this.#logError(error);
          return [];
        });
        return entries.flatMap(([key, value]) => {
          const [owner, id] = JSON.parse(key) as [string, string];
          return owner === scope ? [[id, value] as const] : [];
        });
      },
      get: (id) =>
        this.#map.get(keyOf(id)).catch((error: unknown) => {
          this.#logError(error);
          return undefined;
        }),
      set: async (id, value) => {
        if (id.length > MAX_ID_LENGTH || value.length > MAX_ID_LENGTH) return;
        await this.#map.set(keyOf(id), value).catch(this.#logError);
      },
      delete: (id) => this.#map.delete(keyOf(id)).catch(this.#logError),
    };
  }

  /** Resolves when earlier changes were written. */
  flush(): Promise<void> {
    return this.#map.flush();
  }

  readonly #logError = (error: unknown): void => {
    this.#log.warn({ err: error }, "What is to be known of conversations with Xiaoyi could not be kept or read.");
  };
}
