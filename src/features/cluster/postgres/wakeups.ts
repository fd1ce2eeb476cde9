import { randomBytes, randomInt } from "node:crypto";
import type pg from "pg";
import type { Clock, Log } from "../../../core/model/ports.ts";
import type { Wakeup, Wakeups } from "../../../core/store/contract.ts";
import { type Database, placeToListen, quoteName } from "./connection.ts";
import { createPoll } from "./polling.ts";

/** The class of advisory locks that say: this process lives. */
export const LOCK_CLASS = 0x6472676d;

/** PostgreSQL aborts the whole statement at 8,000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;
/** More than nodes send by far, as each sends one at a time: who else sends is not followed, only looked after. */
const MAX_NOTIFICATIONS = 1_000;
const NOTIFICATIONS_MS = 100;
const FLOOD_MS = 1_000;
const MAX_RETRY_MS = 5_000;
const LOG_EVERY_RETRIES = 60;
const BACKEND = "SELECT pg_backend_pid() AS pid";
/** Others that use the pooler may be quicker. */
const LENT_ATTEMPTS = 3;
const POOLED =
  "Notifications do not arrive through a pooler that lends connections by the transaction; see cluster.listenUrl.";
const ELSEWHERE =
  "Notifications do not arrive over cluster.listenUrl: it leads to another database than the store, or through a pooler that lends connections by the transaction.";

export interface PostgresWakeups extends Wakeups {
  /** Of the lock by which others see at once that this process has died; undefined while it is not held. */
  lockKey(): number | undefined;
  /** To this process only. */
  deliver(wakeup: Wakeup): void;
  /** Listens from now on; until it can, and whenever it cannot, it looks for changes itself. */
  start(): void;
  close(): Promise<void>;
}

interface WakeupOptions {
  readonly database: Database;
  /** A URL past poolers, for the connection that listens; default: that of the store. */
  readonly listenUrl?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** A connection that has not answered for this long is given up. */
  readonly limitMs: number;
  /** The lock was taken or lost. */
  readonly onLockChanged: () => void;
}

/** As JSON; null wakes no one and shows that notifications arrive. */
type Payload = readonly [from: number, wakeup: Wakeup | "all" | null];

/** Wake-ups between processes, by NOTIFY: hints only, lost whenever the connection is. */
export function createPostgresWakeups({
  database,
  listenUrl,
  clock,
  log,
  limitMs,
  onLockChanged,
}: WakeupOptions): PostgresWakeups {
  const findChannel = createChannelFinder(database);
  const place = listenUrl === undefined ? database.place : placeToListen(listenUrl);
  const unheard = listenUrl === undefined ? POOLED : ELSEWHERE;
  const lockKey = randomInt(1, 2 ** 31 - 1);
  const listeners = new Set<(wakeup: Wakeup | "all") => void>();
  let client: pg.Client | undefined;
  let held = false;
  let started = false;
  let closed = false;
  let retries = 0;
  let cancelTimer = () => {};
  let notifications = 0;
  let isFlooded = false;
  let cancelCount = () => {};
  const poll = createPoll(database, clock, log, {
    isNeeded: () => started && !closed && client === undefined && listeners.size > 0,
    onChange: deliver,
  });

  function deliver(wakeup: Wakeup | "all"): void {
    for (const listener of listeners) listener(wakeup);
  }

  function setHeld(value: boolean): void {
    if (held === value) return;
    held = value;
    if (!closed) onLockChanged();
  }

  const toPayload = (wakeup: Payload[1]) => {
    const whole = JSON.stringify([lockKey, wakeup] satisfies Payload);
    return Buffer.byteLength(whole) <= MAX_PAYLOAD_BYTES ? whole : JSON.stringify([lockKey, "all"] satisfies Payload);
  };

  const notifier = createNotifier(database, findChannel, toPayload);

  function receive(payload: string): void {
    if (isFlooded) return;
    if (notifications++ === 0) {
      cancelCount = clock.after(NOTIFICATIONS_MS, () => {
        notifications = 0;
      });
    }
    if (notifications > MAX_NOTIFICATIONS) {
      isFlooded = true;
      cancelCount();
      cancelCount = clock.after(FLOOD_MS, () => {
        isFlooded = false;
        notifications = 0;
        deliver("all");
      });
      return;
    }
    const [from, wakeup] = parsePayload(payload);
    if (from !== lockKey && wakeup !== null) deliver(wakeup);
  }

  /**
   * Behind a pooler that lends connections by the transaction, another client gets the one that this one has used. A LISTEN would
   * stay on it for as long as the pooler keeps it, and notify the client that has it then.
   */
  async function isLent(made: pg.Client): Promise<boolean> {
    for (let attempt = 0; attempt < LENT_ATTEMPTS; attempt++) {
      const own = await withLimit(made.query<{ pid: number }>(BACKEND));
      const [other] = await database.query<{ pid: number }>(BACKEND);
      if (own.rows[0]?.pid === other?.pid) return true;
    }
    return false;
  }

  /** Without a session of its own, behind a pooler for example, notifications never arrive. */
  async function checkSession(made: pg.Client, channel: string): Promise<boolean> {
    const probe = toPayload(null);
    return new Promise((resolve) => {
      const cancel = clock.after(Math.min(limitMs, 2_000), () => resolve(false));
      made.on("notification", ({ payload }) => {
        if (payload !== probe) return;
        cancel();
        resolve(true);
      });
      database.query("SELECT pg_notify($1, $2)", [channel, probe]).catch(() => resolve(false));
    });
  }

  async function listen(): Promise<void> {
    const made = await database.connect(listenUrl);
    let ended = false;
    const end = () => {
      if (ended) return;
      ended = true;
      made.end().catch(() => {});
      // A socket that does not answer would wait for its end for minutes.
      destroySocket(made);
      if (client !== made) return;
      client = undefined;
      setHeld(false);
      if (closed) return;
      log.warn({ place }, "The task store lost the connection that listens; looking for changes until it is back.");
      poll.start();
      listenLater();
    };
    made.once("end", end);
    made.on("error", end);
    try {
      if (await isLent(made)) throw new Error(unheard);
      const channel = await findChannel();
      await withLimit(made.query(`LISTEN ${quoteName(channel)}`));
      if (!(await checkSession(made, channel))) {
        await withLimit(made.query("UNLISTEN *"));
        throw new Error(unheard);
      }
      const locked = await takeLock(made);
      if (closed || ended) throw new Error("It was closed.");
      client = made;
      setHeld(locked);
    } catch (error) {
      end();
      throw error;
    }
    made.on("notification", ({ payload = "" }) => receive(payload));
    retries = 0;
    // What was announced before is lost.
    deliver("all");
    probeLater(made, end);
  }

  /** False while the connection before still has it, of which the server does not know yet that it is gone. */
  async function takeLock(made: pg.Client): Promise<boolean> {
    const text = "SELECT pg_try_advisory_lock($1::integer, $2::integer) AS held";
    const { rows } = await withLimit(made.query<{ held: boolean }>(text, [LOCK_CLASS, lockKey]));
    return rows[0]?.held === true;
  }

  function withLimit<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = clock.after(limitMs, () => reject(new Error(`No answer within ${limitMs} ms.`)));
      work.then(resolve, reject).finally(cancel);
    });
  }

  /** A network that silently drops everything is noticed by nothing else. */
  function probeLater(made: pg.Client, end: () => void): void {
    cancelTimer = clock.after(limitMs, () => {
      const answer = held ? withLimit(made.query("SELECT 1")).then(() => true) : takeLock(made);
      answer.then((locked) => {
        if (client !== made || closed) return;
        setHeld(locked);
        probeLater(made, end);
      }, end);
    });
  }

  function listenLater(): void {
    const wait = Math.min(100 * 2 ** retries, MAX_RETRY_MS);
    cancelTimer = clock.after(wait, attempt);
  }

  function attempt(): void {
    if (closed) return;
    listen().catch((error: unknown) => {
      if (closed) return;
      if (retries % LOG_EVERY_RETRIES === 0) {
        log.warn({ err: error, place }, "The task store cannot listen for changes, and looks for them every 50 ms.");
      }
      retries++;
      poll.start();
      listenLater();
    });
  }

  return {
    lockKey: () => (held ? lockKey : undefined),
    deliver,
    publish(wakeup) {
      deliver(wakeup);
      notifier.send(wakeup);
    },
    subscribe(listener) {
      // A wrapper of its own per subscription: the same function may subscribe twice and leave once.
      const own = (wakeup: Wakeup | "all") => listener(wakeup);
      listeners.add(own);
      if (client === undefined) poll.start();
      return () => {
        listeners.delete(own);
      };
    },
    start() {
      started = true;
      attempt();
    },
    async close() {
      closed = true;
      cancelTimer();
      cancelCount();
      poll.stop();
      await notifier.close();
      const made = client;
      client = undefined;
      held = false;
      if (made === undefined) return;
      // A server that is gone does not answer.
      await withLimit(made.end()).catch(() => destroySocket(made));
    },
  };
}

/**
 * Every role that may connect to the database may listen and notify there: only those that can read the tables know the
 * name of the channel. It is kept as a record, so that nodes of an older version, which know another one, can share the
 * database meanwhile: what the two do not send each other is found by looking.
 */
function createChannelFinder({ query }: Database): () => Promise<string> {
  let known: string | undefined;
  return async () => {
    if (known !== undefined) return known;
    const fresh = `dragoman_${randomBytes(16).toString("hex")}`;
    const put = "INSERT INTO @record (space, key, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    await query(put, [...CHANNEL_RECORD, fresh]);
    const get = "SELECT value FROM @record WHERE space = $1 AND key = $2";
    const [row] = await query<{ value: string }>(get, [...CHANNEL_RECORD]);
    known = row?.value;
    return known ?? fresh;
  };
}

const CHANNEL_RECORD = ["wakeups", "channel"] as const;

/** One statement at a time; what is published meanwhile goes into the next. */
function createNotifier(
  { query }: Database,
  findChannel: () => Promise<string>,
  toPayload: (wakeup: Wakeup) => string,
) {
  let waiting: Wakeup | undefined;
  let sending: Promise<void> | undefined;

  async function sendAll(): Promise<void> {
    while (waiting !== undefined) {
      const payload = toPayload(waiting);
      waiting = undefined;
      // A hint that is lost is found by those who look.
      await findChannel()
        .then(
          (channel) => query("SELECT pg_notify($1, $2)", [channel, payload]),
          () => {},
        )
        .catch(() => {});
    }
    sending = undefined;
  }

  return {
    send(wakeup: Wakeup): void {
      waiting = waiting === undefined ? wakeup : joinWakeups(waiting, wakeup);
      sending ??= Promise.resolve().then(sendAll);
    },
    async close(): Promise<void> {
      await sending;
    },
  };
}

function joinWakeups(one: Wakeup, other: Wakeup): Wakeup {
  const log = [...new Set([...(one.log ?? []), ...(other.log ?? [])])];
  const cancel = [...new Set([...(one.cancel ?? []), ...(other.cancel ?? [])])];
  return {
    log: log.length > 0 ? log : undefined,
    cancel: cancel.length > 0 ? cancel : undefined,
    work: one.work ?? other.work,
    deliveries: one.deliveries ?? other.deliveries,
  };
}

/** What another program has sent says that something changed, and not what. */
function parsePayload(payload: string): Payload {
  try {
    const [from, wakeup] = JSON.parse(payload) as Partial<Payload>;
    if (wakeup === null || wakeup === "all") return [Number(from), wakeup];
    if (wakeup !== undefined && areIds(wakeup.log) && areIds(wakeup.cancel)) return [Number(from), wakeup];
  } catch {}
  return [0, "all"];
}

function areIds(ids: unknown): boolean {
  return ids === undefined || (Array.isArray(ids) && ids.every((id) => typeof id === "string"));
}

function destroySocket(client: pg.Client): void {
  const { connection } = client as pg.Client & { readonly connection?: { readonly stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
