import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { StoreError } from "../errors.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";
import { toOpenError } from "./open-error.ts";

/**
 * Makes this process the only one that serves the file: an exclusive lock on a small database beside it, which the
 * operating system frees when the process ends, however it ends. Returns what gives it up.
 */
export async function own(file: string): Promise<() => void> {
  const lock = await openLock(file);
  try {
    lock.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;");
  } catch (cause) {
    lock.close();
    if (isBusy(cause)) {
      throw new StoreError(
        "in-use",
        `${file} is in use by another dragoman process. Stop that one, or give this one a store of its own.`,
        { cause },
      );
    }
    throw new StoreError("io", `${file} cannot be locked: ${(cause as Error).message}`, { cause });
  }
  return () => release(lock);
}

async function openLock(file: string): Promise<SqliteDriver> {
  const path = `${file}-owner`;
  try {
    // SQLite would not tell why it cannot be made.
    await (await open(path, "a", 0o600)).close();
    return await openDriver(path);
  } catch (cause) {
    throw toOpenError(cause, file, dirname(file));
  }
}

function release(lock: SqliteDriver): void {
  lock.exec("ROLLBACK");
  lock.close();
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message);
}
