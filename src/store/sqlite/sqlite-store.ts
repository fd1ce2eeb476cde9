import { mkdir, open, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock, Log } from "../../model/ports.ts";
import type { TaskStore } from "../contract.ts";
import { StoreError } from "../errors.ts";
import { createLiveness, createWakeups } from "../single-process.ts";
import { Connection, type ConnectionPorts } from "./connection.ts";
import { CommitCounters } from "./counters.ts";
import { isDamage, toStoreError } from "./damage.ts";
import { Deliveries } from "./deliveries.ts";
import { DeliveryOutbox } from "./delivery-claims.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";
import { acquireOwnership, toOpenError } from "./file-access.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { Leases } from "./leases.ts";
import { Lister } from "./lister.ts";
import { Reader } from "./reader.ts";
import { Records } from "./records.ts";
import { Retention } from "./retention.ts";
import { checkSchema, migrate, SCHEMA_VERSION } from "./schema.ts";
import { Writer } from "./writer.ts";

export interface SqliteStoreOptions {
  /**
   * `serve`: the one process that uses the file. `inspect`: look without owning it, beside one that does. `repair`: as
   * that, and change what may be changed beside it.
   */
  readonly mode: "serve" | "inspect" | "repair";
  readonly clock: Clock;
  readonly log: Log;
}

export async function openSqliteStore(path: string, options: SqliteStoreOptions): Promise<TaskStore> {
  const serving = options.mode === "serve";
  const file = await resolveFile(path, serving);
  const release = serving ? await acquireOwnership(file) : () => {};
  let driver: SqliteDriver | undefined;
  try {
    if (serving) await createPrivateFile(file);
    driver = await openDriver(file);
    prepareFile(driver, file, options);
    const leave = serving ? () => checkpointAndRelease(driver as SqliteDriver, release) : release;
    return createSqliteStore(driver, file, options, leave, serving);
  } catch (error) {
    driver?.close();
    release();
    throw toOpenError(error, file);
  }
}

/** A new file is for its owner alone: everything anyone ever sent will be in it. Those beside it take after it. */
async function createPrivateFile(file: string): Promise<void> {
  const made = await open(file, "a", 0o600);
  await made.close();
}

function prepareFile(driver: SqliteDriver, file: string, { mode, log }: SqliteStoreOptions): void {
  driver.exec("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;");
  const version = checkSchema(driver, file);
  if (mode !== "serve") {
    if (version < SCHEMA_VERSION) {
      throw new StoreError("older-schema", `${file} has an older schema; run "dragoman store migrate" first.`);
    }
    if (mode === "inspect") driver.exec("PRAGMA query_only = ON");
    return;
  }
  // Only a new file can be made so that it shrinks; an earlier one has to be rewritten as a whole, by `vacuumFile`.
  if (version === 0) driver.exec("PRAGMA auto_vacuum = INCREMENTAL");
  driver.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768;");
  migrate(driver, version);
  if (version > 0 && version < SCHEMA_VERSION) {
    log.info({ file, from: version, to: SCHEMA_VERSION }, "The task store was brought up to the current schema.");
  }
}

/** The file itself, whatever links lead to it: two names of one file must meet at the same lock. */
async function resolveFile(path: string, serving: boolean): Promise<string> {
  try {
    if (serving) await mkdir(dirname(path), { recursive: true });
    else await stat(path);
    const folder = await realpath(dirname(path));
    return await realpath(path).catch(() => join(folder, basename(path)));
  } catch (cause) {
    throw toOpenError(cause, path, dirname(path));
  }
}

/** Leaves one tidy file behind, for those who copy it; what stays in the log beside it is not lost either. */
function checkpointAndRelease(driver: SqliteDriver, release: () => void): void {
  try {
    driver.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    release();
  }
}

/** The store over an open file of the current schema. */
export function createSqliteStore(
  driver: SqliteDriver,
  file: string,
  ports: ConnectionPorts,
  leave: () => void,
  serving = true,
): TaskStore {
  const { clock } = ports;
  const connection = new Connection(driver, file, ports);
  const liveness = createLiveness(clock);
  const keys = createIdempotencyKeys(connection, clock);
  const records = new Records(connection, clock);
  const deliveries = new Deliveries(connection, clock, liveness);
  const outbox = new DeliveryOutbox(connection, clock, liveness);
  const counters = new CommitCounters(connection, deliveries);
  const reader = new Reader(connection);
  const writer = new Writer({ connection, clock, liveness, keys, counters, deliveries, outbox, records });
  const lister = new Lister(connection, reader, counters);
  const leases = new Leases(connection, liveness, outbox, () => writer.forgetTasks());
  const retention = new Retention(connection, { clock, reader, keys, records, counters });
  let closed = false;

  /** Whatever keeps this process from it, a full disk for example, the next one does it. */
  function catchUp(): void {
    try {
      if (serving) counters.catchUpAll();
    } catch (error) {
      ports.log.warn({ err: toStoreError(error, file), file }, "The counters of the task store are behind.");
    }
  }

  /** Work is done at once; only its outcome is a promise. */
  function promised<T>(work: () => T): Promise<T> {
    try {
      if (closed) throw new StoreError("io", `The task store ${file} is closed.`);
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(toStoreError(error, file));
    }
  }

  /** The same for what is asked about one task, which is named if it cannot be read. */
  function promisedOf<T>(id: string | undefined, work: () => T): Promise<T> {
    return promised(() => {
      try {
        return work();
      } catch (cause) {
        if (!isDamage(cause)) throw cause;
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new StoreError("damaged", `Task ${id} in ${file} cannot be read: ${reason}`, { cause });
      }
    });
  }

  catchUp();
  return {
    description: `sqlite ${file}`,
    durable: true,
    wakeups: createWakeups(),
    write: (writes) => promised(() => writer.write(writes)),
    head: (id) => promisedOf(id, () => reader.head(id)),
    snapshot: (id, how) => promisedOf(id, () => reader.snapshot(id, how)),
    read: (cursors, limit) => promisedOf(cursors[0]?.id, () => reader.read(cursors, limit)),
    numbers: (ids) => promised(() => reader.numbers(ids)),
    list: (query) => promised(() => lister.list(query)),
    findIdempotencyRecord: (key) =>
      promised(() => {
        const scope = connection.findScope(key);
        return scope === undefined ? undefined : keys.find(scope, key.key);
      }),
    heartbeat: (node, ttlMs) => promised(() => leases.heartbeat(node, ttlMs)),
    claim: (node, agents, max) => promised(() => leases.claim(node, agents, max)),
    memory: (id) => promisedOf(id, () => reader.memory(id)),
    delivery: (id, group, deliveryId) => promisedOf(id, () => deliveries.get(id, group, deliveryId)),
    deliveries: (id, query) => promisedOf(id, () => deliveries.list(id, query)),
    claimDeliveries: (query) => promised(() => outbox.claim(query)),
    pendingDeliveries: (query) => promised(() => outbox.pending(query)),
    redeliver: (redelivery) => promised(() => outbox.redeliver(redelivery)),
    record: (space, key) => promised(() => records.get(space, key)),
    records: (space, query) => promised(() => records.list(space, query)),
    compact: (ageMs, max) => promised(() => retention.compact(ageMs, max)),
    prune: (ageMs, max) => promised(() => retention.prune(ageMs, max)),
    shrink: () => promised(() => retention.shrink()),
    storedBytes: (owner) => promised(() => counters.storedBytes(owner)),
    checkWritable: () => promised(() => connection.checkWritable()),
    stats: () => promised(() => retention.stats()),
    close: async () => {
      if (closed) return;
      closed = true;
      catchUp();
      try {
        leave();
      } finally {
        driver.close();
      }
    },
  };
}
