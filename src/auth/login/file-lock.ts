/** One at a time between processes, by a file that only one of them can create. */
import { open, rm, stat } from "node:fs/promises";
import { isCode } from "../../model/system-error.ts";

/** Longer than anything that is done under a lock: whoever holds one for longer is dead. */
const STALE_MS = 60_000;
const LONGEST_PAUSE_MS = 200;

export async function withFileLock<T>(path: string, body: () => Promise<T>): Promise<T> {
  await acquire(path);
  try {
    return await body();
  } finally {
    await rm(path, { force: true });
  }
}

async function acquire(path: string): Promise<void> {
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const file = await open(path, "wx", 0o600);
      await file.close();
      return;
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
    }
    if (await isStale(path)) await rm(path, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > STALE_MS;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}
