/** Files that users sent, stored for as long as their tasks are likely to need them. Readable by the owner only. */

import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { hasErrorCode } from "../../../../core/model/errors.ts";
import type { Clock, Log } from "../../../../core/model/ports.ts";
import { safeFileName } from "../../../../core/wire/safe-file-name.ts";

export interface FileStoreOptions {
  /** Absent: a temporary folder that is removed when the process ends. */
  readonly folder: string | undefined;
  /** Maximum total size; beyond it, the least recently sent files are deleted. */
  readonly quotaBytes: number;
  readonly keepMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface StoredFile {
  /** Absolute. */
  readonly path: string;
  readonly bytes: number;
}

interface StoredContent {
  /** The size of all names together, as each has its own copy of the content. */
  readonly bytes: number;
  /** The most recently sent last. */
  readonly names: readonly string[];
  readonly at: number;
}

const OWNER_ONLY = 0o700;
const OWNER_ONLY_FILE = 0o600;
const MAX_FILES = 10_000;
/**
 * Maximum names per content. The total size does not bound them: a file may be empty, and its sender chooses the names.
 */
const MAX_NAMES_PER_CONTENT = 10;
/** Timers cannot be set as far ahead as files may be stored. */
const MAX_SWEEP_DELAY_MS = 24 * 60 * 60 * 1_000;
const INCOMING = "incoming";
const CONTENT_NAME = /^[0-9a-f]{64}$/;

/** One folder per content, named after its digest; it holds the content under the names it was sent with. */
export class FileStore {
  readonly #options: FileStoreOptions;
  #opening: Promise<string> | undefined;
  /** By content, least recently sent first. */
  readonly #contents = new Map<string, StoredContent>();
  #total = 0;
  /** Serialises additions and removals, so that nothing is removed while it is being added. */
  #changing: Promise<unknown> = Promise.resolve();
  #cancelSweep = (): void => {};

  constructor(options: FileStoreOptions) {
    this.#options = options;
  }

  /** Rejects with the error of the source or of the file system. */
  async add(name: string, source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<StoredFile> {
    const folder = await this.#opened();
    const incoming = join(folder, INCOMING, randomUUID());
    try {
      const { bytes, content } = await write(source, incoming);
      const safe = safeFileName(name);
      await this.#change(() => this.#place(incoming, join(folder, content), safe, bytes));
      return { path: join(folder, content, safe), bytes };
    } catch (error) {
      await rm(incoming, { force: true });
      throw error;
    }
  }

  /** Removes files of an earlier process that should no longer be stored. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    if (folder !== undefined && existsSync(folder)) await this.#opened();
  }

  async stop(): Promise<void> {
    this.#cancelSweep();
    await this.#changing;
    if (this.#options.folder === undefined && this.#opening !== undefined) {
      await rm(await this.#opening, { recursive: true, force: true });
    }
  }

  async #place(incoming: string, place: string, name: string, bytes: number): Promise<void> {
    const content = basename(place);
    const now = this.#options.clock.now();
    const others = (this.#contents.get(content)?.names ?? []).filter((other) => other !== name);
    const names = [...others, name].slice(-MAX_NAMES_PER_CONTENT);
    await mkdir(place, { recursive: true, mode: OWNER_ONLY });
    for (const gone of others.filter((other) => !names.includes(other))) await rm(join(place, gone), { force: true });
    await rename(incoming, join(place, name));
    await utimes(join(place, name), now / 1_000, now / 1_000);
    this.#note(content, { bytes: bytes * names.length, names, at: now });
    await this.#sweep(content);
  }

  #note(content: string, stored: StoredContent): void {
    this.#total += stored.bytes - (this.#contents.get(content)?.bytes ?? 0);
    this.#contents.delete(content);
    this.#contents.set(content, stored);
  }

  /** Removes expired files, and the oldest ones beyond the quota, except the file just added. */
  async #sweep(spared?: string): Promise<void> {
    const { clock, keepMs, quotaBytes } = this.#options;
    const folder = await this.#opened();
    for (const [content, { at, bytes }] of this.#contents) {
      const tooOld = at + keepMs <= clock.now();
      const tooMuch = this.#total > quotaBytes || this.#contents.size > MAX_FILES;
      if (content === spared || !(tooOld || tooMuch)) break;
      await rm(join(folder, content), { recursive: true, force: true });
      this.#contents.delete(content);
      this.#total -= bytes;
    }
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#cancelSweep();
    const { clock, keepMs } = this.#options;
    const [oldest] = this.#contents.values();
    if (oldest === undefined) return;
    const delay = Math.min(Math.max(oldest.at + keepMs - clock.now(), 0), MAX_SWEEP_DELAY_MS);
    this.#cancelSweep = clock.after(delay, () => this.#sweepSoon());
  }

  #sweepSoon(): void {
    this.#change(() => this.#sweep()).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "Old files of Xiaoyi's users could not be removed.");
    });
  }

  #change<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#changing.then(change);
    this.#changing = changed.catch(() => {});
    return changed;
  }

  #opened(): Promise<string> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<string> {
    const folder = this.#options.folder ?? (await mkdtemp(join(tmpdir(), "dragoman-files-")));
    await rm(join(folder, INCOMING), { recursive: true, force: true });
    await mkdir(join(folder, INCOMING), { recursive: true, mode: OWNER_ONLY });
    await chmod(folder, OWNER_ONLY);
    const contents = (await readdir(folder)).filter((name) => CONTENT_NAME.test(name));
    const found = (await Promise.all(contents.map((content) => readContent(folder, content)))).flat();
    for (const { content, stored } of found.sort((one, other) => one.stored.at - other.stored.at))
      this.#note(content, stored);
    this.#sweepSoon();
    return folder;
  }
}

/** Returns the content's digest, too. */
async function write(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string,
): Promise<{ readonly bytes: number; readonly content: string }> {
  const hash = createHash("sha256");
  const file = await open(path, "wx", OWNER_ONLY_FILE);
  let bytes = 0;
  try {
    for await (const chunk of source) {
      hash.update(chunk);
      bytes += chunk.byteLength;
      await file.appendFile(chunk);
    }
  } finally {
    await file.close();
  }
  return { bytes, content: hash.digest("hex") };
}

/** Empty if the folder is removed meanwhile: a process that is ending may still be deleting its files. */
async function readContent(
  folder: string,
  content: string,
): Promise<{ readonly content: string; readonly stored: StoredContent }[]> {
  try {
    const files = await Promise.all(
      (await readdir(join(folder, content))).map(async (name) => {
        const { mtimeMs: at, size } = await stat(join(folder, content, name));
        return { at, name, size };
      }),
    );
    files.sort((one, other) => one.at - other.at);
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    return [{ content, stored: { bytes, names: files.map(({ name }) => name), at: files.at(-1)?.at ?? 0 } }];
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return [];
    throw error;
  }
}
