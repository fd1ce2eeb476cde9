import type { Clock, Log } from "../../../core/model/ports.ts";
import type { TaskStore } from "../../../core/store/contract.ts";
import { StoreError } from "../../../core/store/errors.ts";
import { assertOneWritePerTask } from "../../../core/store/rules.ts";
import { watchAbandonedNodes } from "./abandoned-nodes.ts";
import { openDatabase, placeToListen } from "./connection.ts";
import { createCounters } from "./counters.ts";
import { createDeliveries } from "./deliveries.ts";
import { createDeliveryOutbox } from "./delivery-claims.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { createLeases } from "./leases.ts";
import { createLister } from "./lister.ts";
import { createReadable, createReader } from "./reader.ts";
import { createRecords } from "./records.ts";
import { createRetention } from "./retention.ts";
import { prepareSchema } from "./schema.ts";
import { createScopes } from "./scopes.ts";
import { createPostgresWakeups } from "./wakeups.ts";
import { createWritability } from "./writability.ts";
import { Writer } from "./writer.ts";

export interface PostgresStoreOptions {
  /** `serve`: makes or migrates the tables. `inspect` and `repair`: look, or change little, and leave them as they are. */
  readonly mode: "serve" | "inspect" | "repair";
  /** For timers and log lines; all that is stored follows the clock of the database. */
  readonly clock: Clock;
  readonly log: Log;
  /** How long a node counts as alive after a heartbeat: nothing waits for the database longer than a third of it. */
  readonly leaseMs?: number | undefined;
  /** A URL past poolers, for the connection that listens; default: that of the store. */
  readonly listenUrl?: string | undefined;
  /** Of the cluster that the schema belongs to: one of another name is refused. */
  readonly name?: string | undefined;
  /** Tests give the time in place of the database. */
  readonly now?: () => number;
}

const DEFAULT_LEASE_MS = 15_000;

export async function openPostgresStore(spec: string, options: PostgresStoreOptions): Promise<TaskStore> {
  const { mode, clock, log, leaseMs = DEFAULT_LEASE_MS, listenUrl, name, now } = options;
  // What keeps a node from listening for good is found before it starts.
  if (listenUrl !== undefined) placeToListen(listenUrl);
  const database = await openDatabase(spec, { leaseMs, log, now });
  try {
    await prepareSchema(database, mode, name);
  } catch (error) {
    await database.close();
    throw error;
  }
  const wakeups = createPostgresWakeups({
    database,
    listenUrl,
    clock,
    log,
    limitMs: Math.floor(leaseMs / 3),
    onLockChanged: () => {
      leases.lockChanged().catch((error: unknown) => log.debug({ err: error }, "The lock was not recorded."));
    },
  });
  const scopes = createScopes(database);
  const keys = createIdempotencyKeys(database);
  const records = createRecords(database);
  const readable = createReadable(database, log);
  const leases = createLeases(database, wakeups, readable);
  const deliveries = createDeliveries(database);
  const outbox = createDeliveryOutbox(database, leases);
  const counters = createCounters(database, clock, log);
  const reader = createReader(database, readable);
  const lister = createLister(database, reader, scopes.find, readable);
  const retention = createRetention(database, counters, log);
  const writability = createWritability(database, clock, log);
  const writer = new Writer({ database, scopes, keys, leases, deliveries, outbox, records });
  const underWay = new Set<Promise<unknown>>();
  let closed = false;

  async function reading<T>(work: () => Promise<T>): Promise<T> {
    if (closed) throw new StoreError("io", `The task store ${database.place} is closed.`);
    const made = work();
    underWay.add(made);
    try {
      return await made;
    } catch (cause) {
      if (cause instanceof StoreError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError("damaged", `What is stored in ${database.place} cannot be read: ${reason}`, { cause });
    } finally {
      underWay.delete(made);
    }
  }

  const writing = <T>(work: () => Promise<T>) => reading(() => writability.observe(work));

  let stopWatching = () => {};
  if (mode === "serve") {
    wakeups.start();
    counters.start();
    const onFound = () => wakeups.deliver({ work: true, deliveries: true });
    stopWatching = watchAbandonedNodes({ find: leases.findAbandoned, onFound, clock, log });
  }
  return {
    description: `postgres ${database.place}`,
    durable: true,
    shared: true,
    wakeups,
    async write(writes) {
      if (writes.length === 0) return [];
      assertOneWritePerTask(writes);
      return writing(() => writer.write(writes));
    },
    head: (id) => reading(() => reader.head(id)),
    snapshot: (id, how) => reading(() => reader.snapshot(id, how)),
    read: (cursors, limit) => reading(() => reader.read(cursors, limit)),
    numbers: (ids) => reading(() => reader.numbers(ids)),
    list: (query) => reading(() => lister.list(query)),
    findIdempotencyRecord: (key) => reading(() => keys.find(key)),
    heartbeat: (node, ttlMs, report) => writing(() => leases.heartbeat(node, ttlMs, report)),
    nodes: () => reading(() => leases.nodes()),
    claim: (node, agents, max) => reading(() => leases.claim(node, agents, max)),
    memory: (id) => reading(() => reader.memory(id)),
    delivery: (id, group, deliveryId) => reading(() => deliveries.get(id, group, deliveryId)),
    deliveries: (id, query) => reading(() => deliveries.list(id, query)),
    claimDeliveries: (query) => reading(() => outbox.claim(query)),
    pendingDeliveries: (query) => reading(() => outbox.pending(query)),
    redeliver: (redelivery) => reading(() => outbox.redeliver(redelivery)),
    record: (space, key) => reading(() => records.get(space, key)),
    records: (space, query) => reading(() => records.list(space, query)),
    compact: (ageMs, max) => reading(() => retention.compact(ageMs, max)),
    prune: (ageMs, max) => reading(() => retention.prune(ageMs, max)),
    storedBytes: (owner) => reading(() => counters.storedBytes(owner)),
    checkWritable: () => reading(() => writability.check()),
    stats: () => reading(() => retention.stats()),
    close: async () => {
      if (closed) return;
      closed = true;
      stopWatching();
      await Promise.allSettled(underWay);
      // Whatever keeps this process from saying that it is gone, its lease ends by itself.
      await leases.close().catch((error: unknown) => log.debug({ err: error }, "The leases were not given up."));
      await Promise.all([counters.close(), wakeups.close()]);
      await database.close();
    },
  };
}
