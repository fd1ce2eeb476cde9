/** What a file takes up, what retention will free of it, and how all unused space is given back at once. */

import { realpath, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../model/ports.ts";
import { StoreError } from "../errors.ts";
import { toStoreError } from "./damage.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";
import { acquireOwnership, toOpenError } from "./file-access.ts";
import { checkSchema, pragma } from "./schema.ts";

export interface RetentionTimes {
  readonly compactAfterMs: number;
  /** Undefined: tasks are kept for ever. */
  readonly pruneAfterMs?: number | undefined;
}

/** Ended tasks whose time is over. */
interface DueTasks {
  readonly tasks: number;
  /** Length of their logs and snapshots. */
  readonly bytes: number;
  /** When the next one is due, in milliseconds since 1970; undefined: none is left. */
  readonly nextAt: number | undefined;
}

export interface SpaceForecast {
  /** Whether the file shrinks by itself when tasks are deleted. */
  readonly shrinks: boolean;
  /** Tasks whose logs are reduced to their snapshots; without those that are deleted anyway. */
  readonly compact: DueTasks;
  /** Undefined if tasks are kept for ever. */
  readonly prune: DueTasks | undefined;
}

/**
 * What the next housekeeping will do to a file of the current schema, which another process may be serving. Reads the
 * rows of tasks that are due, and of all others no more than one entry of an index.
 */
export async function forecastSpace(file: string, clock: Clock, times: RetentionTimes): Promise<SpaceForecast> {
  const driver = await openDriver(file);
  try {
    driver.exec("PRAGMA busy_timeout = 5000; PRAGMA query_only = ON;");
    const now = clock.now();
    const { compactAfterMs, pruneAfterMs } = times;
    const prunedUpTo = pruneAfterMs === undefined ? -1 : now - pruneAfterMs;
    const isCompacted = pruneAfterMs === undefined || pruneAfterMs > compactAfterMs;
    return {
      shrinks: pragma(driver, "auto_vacuum") !== 0,
      compact: isCompacted ? findDue(driver, "(0)", prunedUpTo, now - compactAfterMs, compactAfterMs) : NONE_DUE,
      prune: pruneAfterMs === undefined ? undefined : findDue(driver, "(0, 1)", -1, prunedUpTo, pruneAfterMs),
    };
  } finally {
    driver.close();
  }
}

const NONE_DUE: DueTasks = { tasks: 0, bytes: 0, nextAt: undefined };

/** `compacted`: which tasks are meant, as a list of 0 (not yet compacted) and 1. */
function findDue(driver: SqliteDriver, compacted: string, after: number, upTo: number, ageMs: number): DueTasks {
  const ended = `task INDEXED BY task_ended WHERE open = 0 AND (floor > 0) IN ${compacted} AND ended_at`;
  const due = driver
    .prepare<{ tasks: number; bytes: number }>(
      `SELECT count(*) AS tasks, CAST(coalesce(sum(bytes), 0) AS INTEGER) AS bytes FROM ${ended} > ? AND ended_at <= ?`,
    )
    .get(after, upTo);
  const next = driver
    .prepare<{ at: number | null }>(`SELECT min(ended_at) AS at FROM ${ended} > ?`)
    .get(Math.max(after, upTo))?.at;
  return { tasks: due?.tasks ?? 0, bytes: due?.bytes ?? 0, nextAt: next == null ? undefined : next + ageMs };
}

interface Vacuumed {
  readonly bytesBefore: number;
  readonly bytes: number;
}

/**
 * Rewrites the file without unused space, in the form in which it shrinks by itself from then on; files made by early
 * versions do not. Throws a StoreError if a process serves the file, or there is not enough space on the disk.
 */
export async function vacuumFile(path: string): Promise<Vacuumed> {
  // The file itself, whatever links lead to it: a server that uses it locked that name.
  const file = await realpath(path).catch((cause: unknown) => {
    throw toOpenError(cause, path);
  });
  // The copy is made where the space for it was found, and not in a folder for temporary files, which may be small.
  process.env.SQLITE_TMPDIR ??= dirname(file);
  const release = await acquireOwnership(file);
  let driver: SqliteDriver | undefined;
  try {
    driver = await openDriver(file);
    driver.exec("PRAGMA busy_timeout = 5000");
    checkSchema(driver, file);
    const bytesBefore = sizeOf(driver);
    await requireSpace(file, 2 * (bytesBefore - pragma(driver, "freelist_count") * pragma(driver, "page_size")));
    rewrite(driver, file);
    return { bytesBefore, bytes: sizeOf(driver) };
  } catch (error) {
    throw toOpenError(error, file);
  } finally {
    driver?.close();
    release();
  }
}

function rewrite(driver: SqliteDriver, file: string): void {
  try {
    driver.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
  } catch (cause) {
    throw toStoreError(cause, file);
  }
}

/** The new content is written twice: to a copy, and to the log from which it comes into the file. */
async function requireSpace(file: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(file));
  const free = bavail * bsize;
  if (free >= bytes) return;
  throw new StoreError(
    "full",
    `${file} cannot be rewritten: that takes up to ${bytes} bytes beside it for a while, and ${free} are free.`,
  );
}

function sizeOf(driver: SqliteDriver): number {
  return pragma(driver, "page_count") * pragma(driver, "page_size");
}
