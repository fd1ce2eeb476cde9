import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { StoreError, type StoreErrorCode } from "../errors.ts";
import { toStoreError } from "./damage.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";

/** `path` is what the operating system was asked for. */
export function toOpenError(error: unknown, file: string, path = file): unknown {
  if (error instanceof StoreError) return error;
  if (error instanceof Error && /not a database|SQLITE_NOTADB/i.test(`${error.message} ${codeOf(error)}`)) {
    return new StoreError("not-a-database", `${file} is not a database.`, { cause: error });
  }
  const refused = error instanceof Error ? SYSTEM_ERRORS.get(codeOf(error)) : undefined;
  const known = toStoreError(error, file);
  const code = refused?.code ?? (known instanceof StoreError && known.code !== "unavailable" ? known.code : "io");
  const reason = refused?.why(path) ?? (error instanceof Error ? error.message : String(error));
  return new StoreError(code, `The task store ${file} cannot be opened: ${reason}`, { cause: error });
}

const NOT_PERMITTED = {
  code: "read-only",
  why: (path: string) => `this user is not allowed to write to ${path}.`,
} as const;
const SYSTEM_ERRORS = new Map<string, { readonly code: StoreErrorCode; why(path: string): string }>([
  ["EROFS", { code: "read-only", why: (path) => `${path} is on a disk that is mounted read-only.` }],
  ["EACCES", NOT_PERMITTED],
  ["EPERM", NOT_PERMITTED],
  ["ENOENT", { code: "io", why: (path) => `${path} does not exist, or no file can be made there.` }],
  ["ENOSPC", { code: "full", why: () => "the disk is full." }],
  ["EDQUOT", { code: "full", why: () => "the disk quota is used up." }],
]);

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}

/**
 * Makes this process the only one that serves the file: an exclusive lock on a small database beside it, which the
 * operating system frees when the process ends, however it ends. Returns what gives it up.
 */
export async function acquireOwnership(file: string): Promise<() => void> {
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
