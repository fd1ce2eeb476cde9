/** Credentials in files only their owner can read: one file per agent, replaced whole. */

import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasErrorCode } from "../../model/errors.ts";
import type { AgentCredentials, CredentialVault } from "./contract.ts";
import { readAgentCredentials } from "./stored-credentials.ts";

/** Longer than anything that is done under a lock: a holder that takes longer has died. */
const STALE_MS = 60_000;
const MAX_PAUSE_MS = 200;

/** Runs `body` in one process at a time, by a file that only one of them can create. */
async function withFileLock<T>(path: string, body: () => Promise<T>): Promise<T> {
  await acquire(path);
  try {
    return await body();
  } finally {
    await rm(path, { force: true });
  }
}

async function acquire(path: string): Promise<void> {
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      const file = await open(path, "wx", 0o600);
      await file.close();
      return;
    } catch (error) {
      if (!hasErrorCode(error, "EEXIST")) throw error;
    }
    if (await isStale(path)) await rm(path, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function isStale(path: string): Promise<boolean> {
  const held = await unlessAbsent(() => stat(path));
  return held !== undefined && Date.now() - held.mtimeMs > STALE_MS;
}

/** Undefined if the file or folder does not exist. */
async function unlessAbsent<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (hasErrorCode(error, "ENOENT") || hasErrorCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
const VERSION = 1;

interface FileVaultOptions {
  /** Made when it is first needed. */
  readonly folder: string;
  /** Someone else could have read this file; it has been closed to them. */
  readonly onExposed?: (path: string) => void;
}

export function createFileVault({ folder, onExposed }: FileVaultOptions): CredentialVault {
  const pathOf = (agent: string): string => join(folder, `${createHash("sha256").update(agent).digest("hex")}.json`);

  async function load(path: string): Promise<AgentCredentials | undefined> {
    const text = await unlessAbsent(async () => {
      await restrictToOwner(path, onExposed);
      return readFile(path, "utf8");
    });
    try {
      return text === undefined ? undefined : readAgentCredentials(JSON.parse(text));
    } catch {
      // Files are replaced atomically, so an invalid one was written by another program and is not a login.
      return undefined;
    }
  }

  async function read(agent: string): Promise<AgentCredentials | undefined> {
    const found = await load(pathOf(agent));
    return found?.agent === agent ? found : undefined;
  }

  return {
    read,
    async list() {
      const names = (await unlessAbsent(() => readdir(folder))) ?? [];
      const found: AgentCredentials[] = [];
      for (const name of names.filter((one) => one.endsWith(".json"))) {
        const credentials = await load(join(folder, name));
        if (credentials !== undefined && join(folder, name) === pathOf(credentials.agent)) found.push(credentials);
      }
      return found.sort((one, other) => (one.agent < other.agent ? -1 : 1));
    },
    async update(agent, change) {
      await prepareFolder(folder);
      const path = pathOf(agent);
      return withFileLock(`${path}.lock`, async () => {
        const next = await change((await read(agent)) ?? { agent, origins: [], schemes: {} });
        if (Object.keys(next.schemes).length === 0) await rm(path, { force: true });
        else await replaceFile(path, `${JSON.stringify({ version: VERSION, ...next }, undefined, 2)}\n`);
        return next;
      });
    },
  };
}

async function prepareFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
  // It may have been there before, or the umask of its making was odd.
  if (((await stat(folder)).mode & 0o777) !== OWNER_ONLY_FOLDER) await chmod(folder, OWNER_ONLY_FOLDER);
}

/** A reader sees the old file or the new one, and no other user can read either. */
async function replaceFile(path: string, text: string): Promise<void> {
  const fresh = `${path}.${randomUUID()}`;
  try {
    const file = await open(fresh, "wx", OWNER_ONLY);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

async function restrictToOwner(path: string, onExposed: ((path: string) => void) | undefined): Promise<void> {
  if (process.platform === "win32") return;
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return;
  await chmod(path, OWNER_ONLY);
  onExposed?.(path);
}
