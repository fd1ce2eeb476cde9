import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { TaskStore, Wakeup } from "../../../core/store/contract.ts";
import { StoreError } from "../../../core/store/errors.ts";
import {
  ALICE,
  accept,
  append,
  listQuery,
  readAll,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
} from "../../../core/store/suite/fixtures.ts";
import { openDatabase } from "./connection.ts";
import { toStoreError } from "./errors.ts";
import { openPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";
import { prepareSchema } from "./schema.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "./testing/start-postgres.ts";

/** What a promise rejects with; nothing of it may show the password. */
async function errorOf(work: Promise<unknown>, password = "sesame"): Promise<StoreError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StoreError)) throw new Error("expected an error of the store", { cause: error });
  expect(`${error.message} ${error.stack} ${JSON.stringify(error.cause)}`).not.toContain(password);
  return error;
}

const SERVE: PostgresStoreOptions = { mode: "serve", clock: systemClock, log: SILENT_LOG, leaseMs: 3_000 };

describe.runIf(hasPostgres())("PostgreSQL in trouble", () => {
  let server: PostgresServer;
  let schemas = 0;
  const opened: TaskStore[] = [];

  beforeAll(async () => {
    server = await startPostgres({ durable: true });
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });

  afterAll(() => server.close());

  const nextUrl = () => server.url(`trouble ${schemas++}`);

  async function open(url = nextUrl(), options: Partial<PostgresStoreOptions> = {}): Promise<TaskStore> {
    const store = await openPostgresStore(url, { ...SERVE, ...options });
    opened.push(store);
    return store;
  }

  /** Of other programs, as the store sees them. */
  const hear = (store: TaskStore) => {
    const wakeups: (Wakeup | "all")[] = [];
    store.wakeups.subscribe((wakeup) => wakeups.push(wakeup));
    return wakeups;
  };

  const works = async (store: TaskStore) => {
    const id = uniqueId();
    await accept(store, submit(id));
    return (await readAll(store, id)).length === 1;
  };

  const schemaOf = (url: string) => `"${new URL(url).searchParams.get("schema")}"`;

  describe("cannot be opened", () => {
    it("where no one listens", async () => {
      const free = createServer().listen(0, "127.0.0.1");
      await once(free, "listening");
      const { port } = free.address() as AddressInfo;
      free.close();
      const error = await errorOf(open(`postgres://alice:sesame@127.0.0.1:${port}/tasks`));
      expect(error.code).toBe("unreachable");
      expect(error.message).toMatch(`Connection refused: PostgreSQL at 127.0.0.1:${port}/tasks`);
    });

    it("at a host that does not exist", async () => {
      const error = await errorOf(open("postgres://alice:sesame@nowhere.invalid/tasks"));
      expect(error.code).toBe("unreachable");
      expect(error.message).toMatch(/PostgreSQL at nowhere\.invalid:5432\/tasks/);
    });

    it("where something accepts connections and never answers", async () => {
      const silent: Server = createServer().listen(0, "127.0.0.1");
      await once(silent, "listening");
      const { port } = silent.address() as AddressInfo;
      const error = await errorOf(open(`postgres://alice:sesame@127.0.0.1:${port}/tasks`, { leaseMs: 600 }));
      expect(error.code).toBe("unreachable");
      expect(error.message).toMatch(/did not answer in time/);
      silent.close();
    });

    it("where connections are ended in the moment they are made", async () => {
      const message = (type: string, body: string) => {
        const length = Buffer.alloc(4);
        length.writeInt32BE(4 + body.length);
        return Buffer.concat([Buffer.from(type), length, Buffer.from(body, "latin1")]);
      };
      const fatal = message("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
      const accepted = [message("R", "\0\0\0\0"), message("Z", "I")];
      const ending = createServer((socket) => {
        socket.on("error", () => {}).once("data", () => socket.end(Buffer.concat([...accepted, fatal])));
      }).listen(0, "127.0.0.1");
      await once(ending, "listening");
      const { port } = ending.address() as AddressInfo;
      const uncaught: unknown[] = [];
      const onUncaught = (error: unknown) => uncaught.push(error);
      process.on("uncaughtException", onUncaught);
      const error = await errorOf(open(`postgres://alice:sesame@127.0.0.1:${port}/tasks?sslmode=disable`));
      process.off("uncaughtException", onUncaught);
      ending.close();
      expect(uncaught).toEqual([]);
      expect(error.code).toBe("unreachable");
    });

    it("with a wrong password", async () => {
      const wrong = new URL(server.url());
      wrong.password = "sesame";
      expect(await errorOf(open(wrong.href))).toMatchObject({ code: "login" });
    });

    it("without a password where one is asked for", async () => {
      const none = new URL(server.url());
      none.password = "";
      expect(await errorOf(open(none.href))).toMatchObject({ code: "login" });
    });

    it("without a database of that name", async () => {
      const unknown = new URL(server.url());
      unknown.pathname = "/nothing";
      const error = await errorOf(open(unknown.href), unknown.password);
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/^The database does not exist: 127\.0\.0\.1:\d+\/nothing/);
    });

    it("without TLS where that is required", async () => {
      const strict = await startPostgres({ access: ["hostssl all all 127.0.0.1/32 scram-sha-256"] });
      const error = await errorOf(open(strict.url()), new URL(strict.url()).password);
      expect(error.code).toBe("login");
      expect(error.message).toMatch(/TLS/);
      await strict.close();
    });

    it("with tables of another program or of a newer version, which are left as they are", async () => {
      const [other, newer] = [nextUrl(), nextUrl()];
      await server.run(`CREATE SCHEMA ${schemaOf(other)}; CREATE TABLE ${schemaOf(other)}.task (id text)`);
      expect(await errorOf(open(other))).toMatchObject({ code: "not-a-database" });
      await (await openPostgresStore(newer, SERVE)).close();
      await server.run(`UPDATE ${schemaOf(newer)}.store_info SET dragoman_version = 99`);
      for (const mode of ["serve", "inspect"] as const) {
        const error = await errorOf(open(newer, { mode }));
        expect(error.code).toBe("newer-schema");
        expect(error.message).toMatch(/schema 99/);
      }
      expect(await server.run(`SELECT * FROM ${schemaOf(other)}.task`)).toEqual([]);
    });

    it("if the server is too old", async () => {
      const database = await openDatabase(nextUrl(), { leaseMs: 3_000, log: SILENT_LOG });
      const old = { ...database, query: async () => [{ version: "140012", encoding: "UTF8" } as never] };
      const error = await errorOf(prepareSchema(old, "serve"));
      expect(error.message).toMatch(/is version 14; 15 or newer is required/);
      await database.close();
    });

    it("without the right to make tables", async () => {
      await server.run("CREATE ROLE guest LOGIN PASSWORD 'sesame'");
      const guest = new URL(nextUrl());
      guest.username = "guest";
      guest.password = "sesame";
      expect(await errorOf(open(guest.href))).toMatchObject({ code: "login" });
    });
  });

  it("is a schema whose name has quotes", async () => {
    expect(await works(await open(server.url(`o'x "y"`)))).toBe(true);
    expect((await errorOf(open(server.url("a@now")))).message).toMatch(/has a schema "a@now", which cannot be used/);
  });

  it("is being changed by another process for too long", async () => {
    const blocker = new pg.Client({ connectionString: server.url() });
    await blocker.connect();
    const url = nextUrl();
    const schema = new URL(url).searchParams.get("schema");
    await blocker.query("SELECT pg_advisory_lock($1, hashtext($2))", [0x6472676f, schema]);
    const error = await errorOf(open(url));
    expect(error.code).toBe("in-use");
    expect(error.message).toMatch(/^Another process is changing the tables of /);
    await blocker.end();
    expect(await works(await open(url))).toBe(true);
  });

  it("was restored from a back-up of a server with more transactions: lists are whole while others write", async () => {
    const url = nextUrl();
    const before = await openPostgresStore(url, SERVE);
    await accept(before, ...Array.from({ length: 30 }, () => submit(uniqueId())));
    await before.close();
    const [row] = await server.run("SELECT pg_current_xact_id()::text::bigint + 20 AS ahead");
    await server.run(`UPDATE ${schemaOf(url)}.task SET moved = '${row?.ahead}'::xid8`);
    const store = await open(url);
    const first = await store.list(listQuery(ALICE, { limit: 10 }));
    for (let transaction = 0; transaction < 30; transaction++) await accept(store, submit(uniqueId()));
    let seen = first.tasks.length;
    for (let next = first.next; next !== undefined; ) {
      const page = await store.list(listQuery(ALICE, { limit: 10, after: next }));
      seen += page.tasks.length;
      next = page.next;
    }
    expect(seen).toBe(30);
  });

  it("is looked at without changing anything", async () => {
    const url = nextUrl();
    expect(await errorOf(open(url, { mode: "inspect" }))).toMatchObject({ code: "older-schema" });
    expect(await server.run(`SELECT 1 FROM pg_namespace WHERE quote_ident(nspname) = '${schemaOf(url)}'`)).toEqual([]);
    await accept(await open(url), submit(uniqueId()));
    const looking = await open(url, { mode: "inspect" });
    expect(await looking.stats()).toMatchObject({ tasks: 1 });
  });

  it("crashes and comes back: calls fail meanwhile, and later ones work", async () => {
    const store = await open();
    const wakeups = hear(store);
    const id = uniqueId();
    await accept(store, submit(id));
    await expect.poll(() => wakeups).toContain("all");
    await server.stop("immediate");
    wakeups.length = 0;
    expect((await errorOf(store.write([append(id, 1, [])]))).code).toBe("unreachable");
    expect((await errorOf(store.head(id))).code).toBe("unreachable");
    expect((await errorOf(store.heartbeat("n1", 1_000))).code).toBe("unreachable");
    await expect(store.checkWritable?.()).rejects.toBeInstanceOf(StoreError);
    await server.start();
    expect(await works(store)).toBe(true);
    await accept(store, append(id, 1, [statusEvent(id, status(WORKING))]));
    await store.checkWritable?.();
    await expect.poll(() => wakeups).toContain("all");
  });

  it("ends every connection: the next calls have others, and listeners look at everything", async () => {
    const store = await open();
    const wakeups = hear(store);
    await expect.poll(() => wakeups).toContain("all");
    for (let round = 0; round < 3; round++) {
      wakeups.length = 0;
      const mine = "datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'dragoman'";
      await server.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${mine}`);
      await expect.poll(() => works(store).catch(() => false)).toBe(true);
      await expect.poll(() => wakeups).toContain("all");
    }
  });

  it("is read-only for a time: reads work, and writes are refused as such", async () => {
    const store = await open();
    const id = uniqueId();
    await accept(store, submit(id));
    const readOnly = async (value: "on" | "off") => {
      await server.run(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await server.run("SELECT pg_reload_conf()");
    };
    await readOnly("on");
    // Its id is taken: a write that comes before the setting changes nothing.
    await expect.poll(() => store.write([submit(id)]).catch(({ code }) => code)).toBe("read-only");
    expect(await readAll(store, id)).toHaveLength(1);
    expect((await store.list(listQuery(ALICE))).tasks).toHaveLength(1);
    await expect(store.checkWritable?.()).rejects.toMatchObject({ code: "read-only" });
    await readOnly("off");
    await expect.poll(() => works(store).catch(() => false)).toBe(true);
    await store.checkWritable?.();
  });

  it("takes writes again on new connections only: those that were read-only are not used again", async () => {
    const store = await open();
    const [{ name } = { name: "" }] = (await server.run("SELECT current_database() AS name")) as { name: string }[];
    // Settings of a database hold for connections that are made later.
    await server.run(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
    await server.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    await expect.poll(() => store.write([submit(uniqueId())]).catch(({ code }) => code)).toBe("read-only");
    const writable = new pg.Client({
      connectionString: server.url(),
      options: "-c default_transaction_read_only=off",
    });
    await writable.connect();
    await writable.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`);
    await writable.end();
    await expect.poll(() => works(store).catch(() => false)).toBe(true);
  });

  it("holds a lock: statements end in time, and later ones work", async () => {
    const url = nextUrl();
    const store = await open(url, { leaseMs: 900 });
    const id = uniqueId();
    await accept(store, submit(id));
    const blocker = new pg.Client({ connectionString: server.url() });
    await blocker.connect();
    await blocker.query(`BEGIN; LOCK TABLE ${schemaOf(url)}.task IN ACCESS EXCLUSIVE MODE`);
    const calls = [() => store.head(id), () => store.write([submit(uniqueId())]), () => store.list(listQuery(ALICE))];
    for (const call of calls) expect((await errorOf(call())).message).toMatch(/did not answer in time/);
    await blocker.end();
    await expect.poll(() => works(store).catch(() => false)).toBe(true);
  });

  it("runs out of disk: said as such, and recovered from", async () => {
    const url = nextUrl();
    const store = await open(url);
    const schema = schemaOf(url);
    await server.run(`CREATE FUNCTION ${schema}.full() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''53100''; END';
      CREATE TRIGGER full_disk BEFORE INSERT ON ${schema}.segment FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.full()`);
    const id = uniqueId();
    expect(await errorOf(store.write([submit(id)]))).toMatchObject({ code: "full" });
    await expect(store.checkWritable?.()).rejects.toMatchObject({ code: "full" });
    await server.run(`DROP TRIGGER full_disk ON ${schema}.segment`);
    await accept(store, submit(id));
  });

  it("answers slowly: calls take longer, and nothing else", async () => {
    const url = nextUrl();
    const store = await open(url);
    const schema = schemaOf(url);
    await server.run(`CREATE FUNCTION ${schema}.slow() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END';
      CREATE TRIGGER slow_disk AFTER INSERT ON ${schema}.segment FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.slow()`);
    const ids = [uniqueId(), uniqueId(), uniqueId()];
    await Promise.all(ids.map((id) => accept(store, submit(id))));
    expect(await store.numbers(ids)).toEqual([1, 1, 1]);
  });

  it("does without prepared statements where connections are shared", async () => {
    const database = await openDatabase(nextUrl(), { leaseMs: 3_000, log: SILENT_LOG, maxConnections: 1 });
    const ask = () => database.query("SELECT $1::bigint AS one", [1]);
    expect(await ask()).toEqual([{ one: 1 }]);
    await database.query("DEALLOCATE ALL");
    expect(await ask()).toEqual([{ one: 1 }]);
    expect(await server.run("SELECT count(*)::integer AS n FROM pg_prepared_statements")).toEqual([{ n: 0 }]);
    await database.close();
  });

  it("is named in errors without what only the program knows", () => {
    const refused = Object.assign(new Error("no pg_hba.conf entry"), { severity: "FATAL", code: "28000" });
    const lost = Object.assign(new Error("socket hang up"), { client: { password: "sesame" } });
    expect(toStoreError(refused, "h:1/d").message).toMatch(/^PostgreSQL at h:1\/d does not accept this user from here/);
    expect(JSON.stringify(toStoreError(lost, "h:1/d").cause)).not.toContain("sesame");
    expect(toStoreError("odd", "h:1/d")).toMatchObject({ code: "unreachable" });
    const internal = Object.assign(new Error("oops"), { severity: "ERROR", code: "42703" });
    expect(toStoreError(internal, "h:1/d").message).toMatch(/refused a statement \(42703\): oops/);
  });
});
