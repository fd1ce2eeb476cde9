import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { TaskStore, Wakeup } from "../../../core/store/contract.ts";
import { accept, append, status, statusEvent, submit, uniqueId, WORKING } from "../../../core/store/suite/fixtures.ts";
import { type Database, openDatabase } from "./connection.ts";
import { openPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "./testing/start-postgres.ts";
import { createPostgresWakeups, type PostgresWakeups } from "./wakeups.ts";

/** No one listens there. */
const UNREACHABLE = "postgres://127.0.0.1:1/nothing";

describe.runIf(hasPostgres())("wake-ups of nodes that share a PostgreSQL", () => {
  let server: PostgresServer;
  let schemas = 0;
  const opened: TaskStore[] = [];

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });

  afterAll(() => server.close());

  async function open(url: string, options: Partial<PostgresStoreOptions> = {}) {
    const base: PostgresStoreOptions = { mode: "serve", clock: systemClock, log: SILENT_LOG };
    const store = await openPostgresStore(url, { ...base, ...options });
    opened.push(store);
    const received: (Wakeup | "all")[] = [];
    store.wakeups.subscribe((wakeup) => received.push(wakeup));
    // It looks at everything once it listens, or once it begins to look by itself.
    const isReady = () => options.listenUrl !== undefined || (store.wakeups as PostgresWakeups).lockKey() !== undefined;
    await expect.poll(() => received.includes("all") && isReady()).toBe(true);
    return { store, received };
  }

  async function channelOf(url: string): Promise<string> {
    const database = await openDatabase(url, { leaseMs: 3_000, log: SILENT_LOG });
    const [row] = await database.query<{ value: string }>("SELECT value FROM @record WHERE space = 'wakeups'");
    await database.close();
    return row?.value ?? "none";
  }

  /** In a schema whose name has to be quoted. */
  const nextUrl = () => server.url(`Wake "up" ${schemas++}`);

  it("reach the other node, and this one at once and only once", async () => {
    const url = nextUrl();
    const [here, there] = [await open(url), await open(url)];
    const wakeup: Wakeup = { log: ["a", "odd \u0000 \ud800 ' 漢"], cancel: ["b"], work: true, deliveries: true };
    here.received.length = 0;
    here.store.wakeups.publish(wakeup);
    expect(here.received).toEqual([wakeup]);
    await expect.poll(() => there.received).toContainEqual(wakeup);
    there.store.wakeups.publish({ log: ["c"] });
    await expect.poll(() => here.received).toContainEqual({ log: ["c"] });
    expect(here.received).toEqual([wakeup, { log: ["c"] }]);
  });

  it("say that everything may have changed where the ids do not fit", async () => {
    const url = nextUrl();
    const [here, there] = [await open(url), await open(url)];
    there.received.length = 0;
    here.store.wakeups.publish({ log: Array.from({ length: 500 }, (_, index) => `${index} ${"x".repeat(20)}`) });
    await expect.poll(() => there.received).toEqual(["all"]);
  });

  it("are not confused by what other programs send on the channel", async () => {
    const url = nextUrl();
    const { store, received } = await open(url);
    received.length = 0;
    const channel = await channelOf(url);
    for (const payload of ["", "not JSON", "[]", '[1, {"log": 5}]', "null"]) {
      await server.run(`SELECT pg_notify('${channel}', '${payload}')`);
    }
    await expect.poll(() => received).toEqual(["all", "all", "all", "all", "all"]);
    await accept(store, submit(uniqueId()));
  });

  it("go over a channel that only those know who can read the tables", async () => {
    const [url, other] = [nextUrl(), nextUrl()];
    const { received } = await open(url);
    await open(other);
    received.length = 0;
    const schema = new URL(url).searchParams.get("schema");
    await server.run(`SELECT pg_notify('${schema}', '[0, "all"]')`);
    const channel = await channelOf(url);
    expect(channel).toMatch(/^dragoman_[0-9a-f]{32}$/);
    expect(await channelOf(other)).not.toBe(channel);
    await server.run(`SELECT pg_notify('${channel}', '[0, {"log": ["last"]}]')`);
    await expect.poll(() => received).toEqual([{ log: ["last"] }]);
  });

  it("are looked after once, and not followed one by one, when they are too many", async () => {
    const url = nextUrl();
    const { store, received } = await open(url);
    received.length = 0;
    const channel = await channelOf(url);
    await server.run(
      `SELECT pg_notify('${channel}', '[0, {"log": ["' || n || '"]}]') FROM generate_series(1, 50000) n`,
    );
    await expect.poll(() => received.at(-1)).toBe("all");
    expect(received.length).toBeLessThan(10_000);
    expect(received.filter((wakeup) => wakeup === "all").length).toBeLessThan(5);
    const id = uniqueId();
    await accept(store, submit(id));
    store.wakeups.publish({ log: [id] });
    expect(received.at(-1)).toEqual({ log: [id] });
  });

  it("do without a connection that listens: the node looks for changes itself", async () => {
    const url = nextUrl();
    const [here, there] = [await open(url), await open(url, { listenUrl: UNREACHABLE })];
    const [id, ended] = [uniqueId(), uniqueId()];
    const heard = () => there.received.flatMap((wakeup) => (wakeup === "all" ? [] : [wakeup]));
    const logs = () => heard().flatMap(({ log = [] }) => log);
    await accept(here.store, submit(id, [], { node: "n1" }), submit(ended));
    await expect.poll(logs).toContain(id);
    there.received.length = 0;
    await accept(here.store, append(id, 1, [statusEvent(id, status(WORKING, 1))]));
    await expect.poll(logs).toContain(id);
    await accept(here.store, { kind: "request-cancel", id });
    await expect.poll(() => heard().flatMap(({ cancel = [] }) => cancel)).toContain(id);
    there.received.length = 0;
    await accept(here.store, append(ended, 1, [statusEvent(ended, status("TASK_STATE_COMPLETED", 1))]));
    await expect.poll(logs).toContain(ended);
  });

  it("name the address that cannot be listened at, not that of the store and without the password", async () => {
    const url = nextUrl();
    const reasons: string[] = [];
    const warn = (fields: object, message: string) => {
      if (message.includes("cannot listen")) reasons.push(`${Reflect.get(fields, "err")} ${JSON.stringify(fields)}`);
    };
    const log = { ...SILENT_LOG, warn };
    const other = new URL(server.url());
    await server.run("CREATE DATABASE elsewhere");
    other.pathname = "/elsewhere";
    for (const [listenUrl, reason] of [
      ["postgres://bob:sesame@127.0.0.1:1/listening", "Connection refused: PostgreSQL at 127.0.0.1:1/listening"],
      [other.href, "it leads to another database than the store"],
    ] as const) {
      await open(url, { listenUrl, log });
      await expect.poll(() => reasons.at(-1)).toContain(reason);
      expect(reasons.at(-1)).toContain(new URL(listenUrl).pathname);
      for (const hidden of ["sesame", other.password, `${other.host}/postgres`])
        expect(reasons.at(-1)).not.toContain(hidden);
    }
    const broken = open(url, { listenUrl: "postgres://127.0.0.1/dg%zz" });
    await expect(broken).rejects.toThrow("cluster.listenUrl is not a valid URL: its database has a %");
  });

  it("are not asked for on a connection that a pooler lends to others, too", async () => {
    const database = await openDatabase(nextUrl(), { leaseMs: 3_000, log: SILENT_LOG });
    const texts: unknown[] = [];
    let lent: pg.Client | undefined;
    let settle = () => {};
    const pooled: Database = {
      ...database,
      async connect() {
        const client = await database.connect();
        const { query } = client;
        client.query = (text: unknown, ...rest: unknown[]) => {
          texts.push(text);
          if (String(text).startsWith("LISTEN")) settle();
          return Reflect.apply(query, client, [text, ...rest]);
        };
        lent = client;
        return client;
      },
      // What another client of the pooler runs, on the same connection.
      query: async (text, values = []) => (await lent?.query<never>(text, [...values]))?.rows ?? [],
    };
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const wakeups = createPostgresWakeups({
      database: pooled,
      clock: systemClock,
      log: { ...SILENT_LOG, warn: () => settle() },
      limitMs: 1_000,
      onLockChanged: () => {},
    });
    wakeups.start();
    await settled;
    await wakeups.close();
    await database.close();
    expect(texts).toContain("SELECT pg_backend_pid() AS pid");
    expect(texts.filter((text) => String(text).startsWith("LISTEN"))).toEqual([]);
  });

  it("announce that a node has died", async () => {
    const url = nextUrl();
    const [dying, other] = [await open(url), await open(url)];
    const schema = new URL(url).searchParams.get("schema")?.replaceAll('"', '""');
    await dying.store.heartbeat("n1", 3_600_000);
    await accept(dying.store, submit(uniqueId(), [], { node: "n1" }));
    other.received.length = 0;
    // As if its lease had ended while it was away.
    await server.run(`UPDATE "${schema}".node SET expires_at = 0, beat_at = 0`);
    await expect.poll(() => other.received).toContainEqual({ work: true, deliveries: true });
  });
});
