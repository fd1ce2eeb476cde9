import { mkdir, open, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock, Log } from "../../model/ports.ts";
import type { TaskStore, Write, WriteResult } from "../contract.ts";
import { encodeAll, encodeWrites } from "../encode-writes.ts";
import { StoreError } from "../errors.ts";
import { assertOneWritePerTask } from "../rules.ts";
import { createLiveness, createWakeups } from "../single-process.ts";
import { Connection, type ConnectionPorts } from "./connection.ts";
import { CommitCounters } from "./counters.ts";
import { isDamage, toStoreError } from "./damage.ts";
import { Deliveries } from "./deliveries.ts";
import { DeliveryOutbox } from "./delivery-claims.ts";
import { COMMON_PRAGMAS, openDriver, type SqliteDriver, WRITING_PRAGMAS } from "./driver.ts";
import { acquireOwnership, toOpenError } from "./file-access.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { Leases } from "./leases.ts";
import { Lister } from "./lister.ts";
import { Reader } from "./reader.ts";
import { Records } from "./records.ts";
import { Retention } from "./retention.ts";
import { checkSchema, migrate, SCHEMA_VERSION } from "./schema.ts";
import { LargeWrites, type ThreadOptions } from "./thread/large-writes.ts";
import { Writer } from "./writer.ts";

export interface SqliteStoreOptions {
  /**
   * `serve`: the one process that uses the file. `inspect`: look without owning it, beside one that does. `repair`: as
   * that, and change what may be changed beside it.
   */
  readonly mode: "serve" | "inspect" | "repair";
  readonly clock: Clock;
  readonly log: Log;
  /** Large writes are then made on a thread, beside which this one serves others. */
  readonly thread?: ThreadOptions | undefined;
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
  driver.exec(COMMON_PRAGMAS);
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
  driver.exec(`PRAGMA journal_mode = WAL; ${WRITING_PRAGMAS}`);
  migrate(driver, version);
  if (version > 0 && version < SCHEMA_VERSION) {
    // A migration may copy the whole log, which the write-ahead log would keep as large for as long as the file is open.
    driver.exec("PRAGMA wal_checkpoint(TRUNCATE)");
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
  ports: ConnectionPorts & Pick<SqliteStoreOptions, "thread">,
  leave: () => void,
  serving = true,
): TaskStore {
  const { clock, log, thread } = ports;
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
  const large = thread && new LargeWrites({ file, connection, writer, log, thread });
  let closed = false;
  /** A write under way on another thread. */
  let pending: Promise<unknown> | undefined;

  /** Whatever keeps this process from it, a full disk for example, the next one does it. */
  function catchUp(): void {
    try {
      if (serving) counters.catchUpAll();
    } catch (error) {
      log.warn({ err: toStoreError(error, file), file }, "The counters of the task store are behind.");
    }
  }

  /** Work is done at once; only its outcome is a promise. */
  function promised<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      if (closed) throw new StoreError("io", `The task store ${file} is closed.`);
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(toStoreError(error, file));
    }
  }

  function reading<T>(work: () => T): Promise<T> {
    return promised(() => (pending === undefined ? work() : connection.readConsistently(work)));
  }

  /** SQLite has one writer at a time: the next waits for one on another thread. */
  function writing<T>(work: () => T | Promise<T>): Promise<T> {
    return pending === undefined ? promised(work) : pending.then(() => writing(work));
  }

  function write(writes: readonly Write[]): WriteResult[] | Promise<WriteResult[]> {
    if (writes.length === 0) return [];
    assertOneWritePerTask(writes);
    if (large === undefined) return writer.write(encodeAll(encodeWrites(writes)));
    const made = large.write(writes);
    if (!(made instanceof Promise)) return made;
    const settle = () => {
      pending = undefined;
    };
    pending = made.then(settle, settle);
    return made;
  }

  /** The same for what is asked about one task, which is named if it cannot be read. */
  function promisedOf<T>(id: string | undefined, work: () => T): Promise<T> {
    return reading(() => {
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
    write: (writes) => writing(() => write(writes)),
    head: (id) => promisedOf(id, () => reader.head(id)),
    snapshot: (id, how) => promisedOf(id, () => reader.snapshot(id, how)),
    read: (cursors, limit) => promisedOf(cursors[0]?.id, () => reader.read(cursors, limit)),
    numbers: (ids) => reading(() => reader.numbers(ids)),
    list: (query) => reading(() => lister.list(query)),
    findIdempotencyRecord: (key) =>
      reading(() => {
        const scope = connection.findScope(key);
        return scope === undefined ? undefined : keys.find(scope, key.key);
      }),
    heartbeat: (node, ttlMs) => writing(() => leases.heartbeat(node, ttlMs)),
    claim: (node, agents, max) => writing(() => leases.claim(node, agents, max)),
    memory: (id) => promisedOf(id, () => reader.memory(id)),
    delivery: (id, group, deliveryId) => promisedOf(id, () => deliveries.get(id, group, deliveryId)),
    deliveries: (id, query) => promisedOf(id, () => deliveries.list(id, query)),
    claimDeliveries: (query) => writing(() => outbox.claim(query)),
    pendingDeliveries: (query) => reading(() => outbox.pending(query)),
    redeliver: (redelivery) => writing(() => outbox.redeliver(redelivery)),
    record: (space, key) => reading(() => records.get(space, key)),
    records: (space, query) => reading(() => records.list(space, query)),
    compact: (ageMs, max) => writing(() => retention.compact(ageMs, max)),
    prune: (ageMs, max) => writing(() => retention.prune(ageMs, max)),
    shrink: () => writing(() => retention.shrink()),
    storedBytes: (owner) => reading(() => counters.storedBytes(owner)),
    checkWritable: () => writing(() => connection.checkWritable()),
    stats: () => reading(() => retention.stats()),
    close: async () => {
      if (closed) return;
      closed = true;
      await pending;
      await large?.stop();
      catchUp();
      try {
        leave();
      } finally {
        driver.close();
      }
    },
  };
}
