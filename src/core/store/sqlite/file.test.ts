import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../model/ports.ts";
import { LIST_VIEW_MS, type ListPosition, type TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  EVERYTHING,
  finished,
  listQuery,
  MINUTE,
  message,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
} from "../suite/fixtures.ts";
import { openDriver } from "./driver.ts";
import { toOpenError } from "./file-access.ts";
import { migrate, SCHEMA_VERSION } from "./schema.ts";
import { createSqliteStore, openSqliteStore } from "./sqlite-store.ts";

const clock = { now: () => Date.now(), after: () => () => {} };
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "store-file-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const WEBHOOKS = { group: "webhooks", limit: 10 } as const;
const CLAIM = { node: "m", route: "webhook", max: 10, ttlMs: 60_000, perLane: 10, busy: new Map<string, number>() };

const newFile = () => join(folder, `${uniqueId("data")}.db`);

function open(file: string, mode: "serve" | "inspect" = "serve"): Promise<TaskStore> {
  return openSqliteStore(file, { mode, clock, log: SILENT_LOG });
}

it.each([
  ["/proc", /data\.db cannot be opened: (\/proc does not exist, or no file can be made there|.* not allowed to write)/],
  // Not even root may write there: forbidden, or mounted read-only.
  [
    "/sys",
    /data\.db cannot be opened: (this user is not allowed to write to \/sys|\/sys is on a disk that is mounted read-only)/,
  ],
])("a place where no file can be, such as %s, is refused with the reason", async (folder, reason) => {
  const file = join(folder, "data.db");
  await expect(open(file)).rejects.toMatchObject({ name: "StoreError" });
  await expect(open(file)).rejects.toThrow(reason);
});

it.each([
  ["EROFS", "read-only", "/srv is on a disk that is mounted read-only."],
  ["EACCES", "read-only", "this user is not allowed to write to /srv."],
  ["ENOSPC", "full", "the disk is full."],
])("%s is named as what it is", (code, storeCode, reason) => {
  const error = toOpenError(Object.assign(new Error("?"), { code }), "/srv/data.db", "/srv");
  expect(error).toMatchObject({
    code: storeCode,
    message: `The task store /srv/data.db cannot be opened: ${reason}`,
  });
});

it("a file is in use under every name that leads to it", async () => {
  const file = newFile();
  const first = await open(file);
  const alias = join(folder, uniqueId("alias"));
  await symlink(file, alias);
  await symlink(folder, `${alias}-folder`);
  await expect(open(alias)).rejects.toMatchObject({ code: "in-use" });
  await expect(open(join(`${alias}-folder`, basename(file)))).rejects.toMatchObject({ code: "in-use" });
  await first.close();
});

describe("the process that serves a file", () => {
  it("is the only one, and leaves a single file with everything in it", async () => {
    const file = newFile();
    const first = await open(file);
    await expect(open(file)).rejects.toMatchObject({ name: "StoreError", code: "in-use" });
    await expect(open(file)).rejects.toThrow(file);
    await accept(first, finished("task"));
    await first.close();
    await first.close();
    const left = await stat(`${file}-wal`).catch(() => ({ size: 0 }));
    expect(left.size).toBe(0);
    const second = await open(file);
    expect(await second.numbers(["task"])).toEqual([2]);
    await second.close();
    await expect(second.head("task")).rejects.toMatchObject({ code: "io" });
  });

  it.each([
    ["", []],
    [", nor what was written on its thread", ["1"]],
  ])("loses nothing that was acknowledged when it is killed%s", async (_, above) => {
    const file = newFile();
    const script = fileURLToPath(new URL("./crash-child.ts", import.meta.url));
    const child = spawn(process.execPath, ["--import", "tsx", script, file, ...above], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const acknowledged: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged.push(...line.split(","));
      if (acknowledged.length === 5) await expect(open(file)).rejects.toMatchObject({ code: "in-use" });
      if (acknowledged.length >= 200) break;
    }
    child.kill("SIGKILL");
    await once(child, "exit");

    const store = await open(file);
    for (const line of acknowledged) {
      const [id = "", number] = line.split("=");
      expect(number).toBe("3");
      const snapshot = await store.snapshot(id, EVERYTHING);
      expect(snapshot).toMatchObject({ number: 3, task: { artifacts: [{ parts: [{ text: id }] }] } });
    }
    const { tasks, events } = await store.stats();
    expect(tasks).toBeGreaterThanOrEqual(200);
    expect(events).toBeGreaterThanOrEqual(600);
    expect((await store.list(listQuery(ALICE))).total).toBe(tasks);

    await store.heartbeat("heir", 60_000);
    const claimed = await store.claim("heir", [ALICE.agent], 10_000);
    expect(claimed).toHaveLength(tasks);
    expect(claimed.every(({ fence }) => fence === 2)).toBe(true);
    await store.close();
  });
});

describe("a new file", () => {
  it("is for its owner alone, and so are those beside it", async () => {
    const file = newFile();
    const store = await open(file);
    await accept(store, finished("task"));
    const modes = await Promise.all([file, `${file}-wal`].map(async (name) => (await stat(name)).mode & 0o777));
    expect(modes).toEqual([0o600, 0o600]);
    await store.close();
  });
});

describe("inspection", () => {
  it("looks at a file that is being served, and changes nothing", async () => {
    const file = newFile();
    const serving = await open(file);
    await accept(serving, finished("task"));
    const inspecting = await open(file, "inspect");
    expect(await inspecting.stats()).toMatchObject({ tasks: 1, events: 2, schemaVersion: SCHEMA_VERSION });
    await expect(inspecting.write([finished("other")])).rejects.toMatchObject({ code: "read-only" });
    await accept(serving, finished("third"));
    expect(await inspecting.stats()).toMatchObject({ tasks: 2 });
    await inspecting.close();
    await serving.close();
  });

  it("makes no file", async () => {
    const file = newFile();
    await expect(open(file, "inspect")).rejects.toMatchObject({ code: "io" });
    await expect(stat(file)).rejects.toThrow();
  });
});

describe("a file of an earlier schema", () => {
  /** What became of columns that have no longer a name. */
  const IN_KEY: Readonly<Record<string, string>> = {
    task: "key >> 31",
    last: `key & ${2 ** 31 - 1}`,
    part: `key & ${2 ** 31 - 1}`,
  };

  /** As that version left it, with the same content in the tables and columns that have kept their names. */
  async function earlierFile(newer: string, version: number, more = ""): Promise<string> {
    const file = newFile();
    const driver = await openDriver(file);
    migrate(driver, 0, version);
    driver.exec(`ATTACH '${newer}' AS newer`);
    const namesOf = (sql: string) =>
      driver
        .prepare<{ name: string }>(sql)
        .all()
        .map(({ name }) => name);
    const tables = "SELECT name FROM newer.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    for (const table of namesOf(tables.replace("newer", "main")).filter((name) => namesOf(tables).includes(name))) {
      const columns = namesOf(`PRAGMA main.table_info(${table})`);
      const known = namesOf(`PRAGMA newer.table_info(${table})`);
      const replaced = (column: string) => (known[0] === "key" ? IN_KEY[column] : undefined) ?? "0";
      const values = columns.map((column) => (known.includes(column) ? column : replaced(column)));
      driver.exec(`DELETE FROM main.${table};
        INSERT INTO main.${table} (${columns.join(", ")}) SELECT ${values.join(", ")} FROM newer.${table};`);
    }
    driver.exec(more);
    driver.close();
    return file;
  }

  it("keeps all it has when it is brought up to date, and takes deliveries", async () => {
    const newer = newFile();
    const before = await open(newer);
    const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
    await accept(before, submit("running", [], { node: "n", idempotency }), finished("ended", 1), finished("old"));
    await accept(before, { kind: "remember", id: "running", fence: 1, key: "k", value: "1" });
    await accept(before, append("running", 1, [chunkEvent("running", [{ text: "a" }])], { fence: 1 }));
    await before.compact(0, 10);
    const view = async (store: TaskStore) => ({
      // The bytes of a task that runs are counted in memory, and written later.
      heads: await Promise.all(
        ["running", "ended", "old"].map(async (id) => ({ ...(await store.head(id)), bytes: 0 })),
      ),
      snapshots: await Promise.all(["running", "ended", "old"].map((id) => store.snapshot(id, EVERYTHING))),
      memory: await store.memory("running"),
      page: await store.list(listQuery(ALICE)),
      key: await store.findIdempotencyRecord({ ...ALICE, key: "key" }),
      stats: { ...(await store.stats()), bytes: 0 },
      storedBytes: await store.storedBytes(ALICE.owner),
    });
    const known = await view(before);
    expect(known.storedBytes).toBeGreaterThan(0);
    await before.close();

    const file = await earlierFile(newer, 1);
    await expect(open(file, "inspect")).rejects.toMatchObject({ code: "older-schema" });
    const after = await open(file);
    expect(await view(after)).toEqual(known);
    const delivery = registration("c");
    await accept(after, { kind: "delivery-put", ...ALICE, id: "running", delivery });
    await after.close();

    const again = await open(file);
    const { deliveries } = (await again.deliveries("running", WEBHOOKS)) ?? {};
    expect(deliveries).toMatchObject([{ ...delivery, cursor: 2 }]);
    await again.close();
  });

  it("continues a list by state that began before, at the positions that tasks had then", async () => {
    const newer = newFile();
    const before = await open(newer);
    for (const at of [1, 2, 3, 4]) {
      await accept(before, submit(`task ${at}`, [statusEvent(`task ${at}`, status(WORKING, at))], { contextId: "c" }));
    }
    const query = listQuery(ALICE, { state: WORKING, limit: 1 });
    const { next } = await before.list(query);
    await accept(before, append("task 3", 2, [statusEvent("task 3", status(WORKING, 9))]));
    await accept(before, append("task 2", 2, [statusEvent("task 2", status(COMPLETED, 9))]));
    await before.close();

    const after = await open(await earlierFile(newer, 7));
    const rest = async (by: object) =>
      (await after.list({ ...query, ...by, limit: 9, after: next as ListPosition })).tasks;
    const idsOf = (tasks: readonly { readonly id: string }[]) => tasks.map(({ id }) => id);
    expect(idsOf(await rest({}))).toEqual(["task 3", "task 1"]);
    expect(idsOf(await rest({ contextId: "c" }))).toEqual(["task 3", "task 1"]);
    await accept(after, append("task 3", 3, [statusEvent("task 3", status(COMPLETED, 10))]));
    expect(idsOf(await rest({}))).toEqual(["task 1"]);
    await after.close();
  });

  it("with push configs gives what these have not delivered yet to the first who asks", async () => {
    const newer = newFile();
    const before = await open(newer);
    await accept(before, finished("due"), finished("idle"), submit("later"));
    await before.close();

    const row = (id: string, cursor: number) =>
      `INSERT INTO push_config (task, id, url, dialect, created_at, cursor)
         SELECT seq, 'c', 'https://hook.example/', 'a2a-v1', 7, ${cursor} FROM task WHERE id = '${id}';`;
    const after = await open(await earlierFile(newer, 2, row("due", 0) + row("idle", 2) + row("later", 1)));
    const claimed = async () => (await after.claimDeliveries(CLAIM)).claims.map(({ delivery }) => delivery.taskId);
    expect(await claimed()).toEqual(["due"]);
    await accept(after, append("later", 1, [chunkEvent("later", [{ text: "a" }])]));
    expect(await claimed()).toEqual(["later"]);
    await after.close();
  });

  it("with push configs under way keeps their cursors, claims and failures as deliveries to webhooks", async () => {
    const newer = newFile();
    const before = await open(newer);
    await accept(before, finished("task"));
    await before.close();

    const row = (place: number, members: Record<string, string | number>) => {
      const all = { place, task: 1, id: `c${place}`, url: "https://hook.example/", host: "hook.example", ...members };
      const given = { ...all, dialect: "a2a-v1", created_at: 7, cursor: 1, ...members };
      const values = Object.values(given).map((value) => (typeof value === "number" ? value : `'${value}'`));
      return `INSERT INTO push_config (${Object.keys(given).join(", ")}) VALUES (${values.join(", ")});`;
    };
    const rows = [
      row(1, { cursor: 2, token: 'to"ken' }),
      row(3, { due_at: 5, attempts: 2, last_error: "HTTP 503", token: `\u0001${JSON.stringify("a\0b")}` }),
      row(4, { due_at: Number.MAX_SAFE_INTEGER, holder: "n", claim: 4, authentication: '{"scheme":"Basic"}' }),
      row(5, { dead_at: 9, attempts: 12, last_error: "gone", token: "t", authentication: '{"scheme":"Basic"}' }),
      row(9, {}),
      "DELETE FROM push_config WHERE place = 9; UPDATE task SET push = 1;",
    ];
    const after = await open(await earlierFile(newer, 4, rows.join("")));
    const kept = await after.deliveries("task", WEBHOOKS);
    const secrets = [{ token: 'to"ken' }, { token: "a\0b" }, { authentication: { scheme: "Basic" } }];
    expect(kept?.deliveries.map(({ id, cursor, secret }) => [id, cursor, JSON.parse(secret ?? "")])).toEqual([
      ["c1", 2, secrets[0]],
      ["c3", 1, secrets[1]],
      ["c4", 1, secrets[2]],
      ["c5", 1, { token: "t", ...secrets[2] }],
    ]);
    const [first] = kept?.deliveries ?? [];
    expect(first).toMatchObject({ ...registration("c1"), address: "https://hook.example/", createdAt: 7 });
    expect(await after.pendingDeliveries({ limit: 10 })).toMatchObject([
      { place: 3, route: "webhook", attempts: 2, lastError: "HTTP 503" },
      { place: 4, cursor: 1 },
      { place: 5, attempts: 12, lastError: "gone", deadAt: 9 },
    ]);
    const { claims } = await after.claimDeliveries(CLAIM);
    expect(claims).toMatchObject([{ place: 3, lane: "hook.example", attempts: 2, delivery: { cursor: 1 } }]);
    const held = { kind: "delivery-progress" as const, id: "task", place: 4, claim: 4, cursor: 2 };
    await accept(after, { ...held, next: { kind: "release" } });
    await accept(after, { kind: "delivery-put", ...ALICE, id: "task", after: 0, delivery: registration("new") });
    expect((await after.claimDeliveries(CLAIM)).claims).toMatchObject([{ place: 10, delivery: { id: "new" } }]);
    await after.close();
  });

  it.each([1, 2, 3, 4, 5, 8])("%i is then the same as one that was made new", async (version) => {
    const newer = newFile();
    await (await open(newer)).close();
    const file = await earlierFile(newer, version);
    await (await open(file)).close();
    const schemas = await Promise.all([file, newer].map(schemaOf));
    expect(schemas[0]).toEqual(schemas[1]);
    expect(schemas[0]?.join()).toContain("delivery");
  });

  async function schemaOf(file: string): Promise<readonly string[]> {
    const driver = await openDriver(file);
    const rows = driver.prepare<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name");
    const schema = rows.all().map(({ sql }) => sql);
    driver.close();
    return schema;
  }
});

describe("a file that cannot be used", () => {
  it("of a newer schema is refused and left alone", async () => {
    const file = newFile();
    await (await open(file)).close();
    const driver = await openDriver(file);
    driver.exec("PRAGMA user_version = 99");
    driver.close();
    await expect(open(file)).rejects.toMatchObject({ code: "newer-schema" });
    await expect(open(file)).rejects.toThrow(/99/);
  });

  it("that is no database is refused", async () => {
    const file = newFile();
    await writeFile(file, "these are not the tables you are looking for, nor is this a header".repeat(20));
    await expect(open(file)).rejects.toMatchObject({ code: "not-a-database" });
  });

  it("of another program is refused", async () => {
    const file = newFile();
    const driver = await openDriver(file);
    driver.exec("CREATE TABLE theirs (a)");
    driver.close();
    await expect(open(file)).rejects.toMatchObject({ code: "not-a-database" });
  });

  it("because it is a folder, or below a file, is refused", async () => {
    const file = newFile();
    await mkdir(file);
    await expect(open(file)).rejects.toMatchObject({ code: "io" });
    const plain = newFile();
    await writeFile(plain, "");
    await expect(open(join(plain, "below.db"))).rejects.toMatchObject({ code: "io" });
  });

  it("gives its lock back", async () => {
    const file = newFile();
    await writeFile(file, "not a database at all".repeat(100));
    await expect(open(file)).rejects.toMatchObject({ code: "not-a-database" });
    await rm(file);
    await (await open(file)).close();
  });
});

describe("a full disk", () => {
  it("rejects the write, changes nothing, and the store goes on", async () => {
    const file = newFile();
    const driver = await openDriver(file);
    driver.exec("PRAGMA journal_mode = WAL");
    migrate(driver, 0);
    const store = createSqliteStore(driver, file, { clock, log: SILENT_LOG }, () => {});
    await accept(store, submit("small", [], { node: "n" }));
    const before = await store.stats();
    driver.exec(`PRAGMA max_page_count = ${before.bytes / 4096 + 4}`);
    const large = chunkEvent("small", [{ text: "x".repeat(1_000_000) }]);
    const group = [
      submit("neighbour", [], { tenant: "new" }),
      append("small", 1, [statusEvent("small", status(WORKING, 5)), large], { fence: 1 }),
    ];
    await expect(store.write(group)).rejects.toMatchObject({ name: "StoreError", code: "full" });
    expect(await store.stats()).toEqual(before);
    expect(await store.head("neighbour")).toBeUndefined();
    expect(await store.numbers(["small"])).toEqual([1]);
    driver.exec("PRAGMA max_page_count = 1000000");
    await accept(store, ...group);
    expect(await store.numbers(["small", "neighbour"])).toEqual([3, 1]);
    expect((await store.head("neighbour"))?.tenant).toBe("new");
    await store.close();
  });
});

describe("the database itself", () => {
  it("keeps the positions that tasks leave only for lists of several pages, and not for ever", async () => {
    const file = newFile();
    const time = { now: Date.now() };
    const store = await openSqliteStore(file, {
      mode: "serve",
      clock: { ...clock, now: () => time.now },
      log: SILENT_LOG,
    });
    const driver = await openDriver(file);
    const positions = () => driver.prepare<{ n: number }>("SELECT count(*) AS n FROM past_position").get()?.n;
    const change = async (number: number) => {
      for (const id of ["one", "two"])
        await accept(store, append(id, number, [statusEvent(id, status(WORKING, number))]));
    };
    await accept(store, submit("one"), submit("two"));
    await change(1);
    await store.list(listQuery(ALICE, { limit: 2 }));
    await change(2);
    expect(positions()).toBe(0);
    const { next } = await store.list(listQuery(ALICE, { limit: 1 }));
    await change(3);
    await change(4);
    expect(positions()).toBe(2);
    time.now += LIST_VIEW_MS - 1;
    await store.prune(LIST_VIEW_MS, 10);
    const page = (after: ListPosition | undefined) =>
      store.list(listQuery(ALICE, { limit: 1, ...(after && { after }) }));
    expect((await page(next)).tasks.map(({ id }) => id)).toEqual(["one"]);
    time.now += 2;
    await store.prune(0, 10);
    expect(positions()).toBe(0);
    // Too late to be complete; what was shown is still not shown again.
    expect((await page(next)).tasks).toEqual([]);
    driver.close();
    await store.close();
  });

  it("has no deliveries without a task, also of an earlier process", async () => {
    const file = newFile();
    const deliveries = [registration("c")];
    const before = await open(file);
    await accept(before, finished("ended", 0, { deliveries }), submit("taken", [], { node: "n", deliveries }));
    await before.close();
    const after = await open(file);
    await accept(after, { kind: "discard", id: "taken", fence: 1, reply: message("plain") });
    expect(await after.prune(0, 10)).toBe(1);
    await after.close();
    const driver = await openDriver(file);
    expect(driver.prepare<{ n: number }>("SELECT count(*) AS n FROM delivery").get()?.n).toBe(0);
    driver.close();
  });

  it("writes only the log for a chunk, and the counters know of it all the same, also after a crash", async () => {
    const file = newFile();
    const store = await open(file);
    await accept(store, submit("stream", [statusEvent("stream", status(WORKING, 1))], { node: "n" }));
    const chunk = (number: number) =>
      append("stream", number, [chunkEvent("stream", [{ text: "é" }], number > 2)], { fence: 1 });
    for (const number of [2, 3, 4]) await accept(store, chunk(number));
    const figures = async (of: TaskStore) => ({
      events: (await of.stats()).events,
      bytes: await of.storedBytes(ALICE.owner),
      number: (await of.head("stream"))?.number,
      text: (await of.snapshot("stream", EVERYTHING))?.task.artifacts?.[0]?.parts,
    });
    const known = await figures(store);
    expect(known).toMatchObject({ events: 5, number: 5, text: [{ text: "ééé" }] });

    const beside = await open(file, "inspect");
    expect(await figures(beside)).toMatchObject({ number: 5, text: known.text });
    await beside.close();

    // As the file of a process that was killed here.
    const driver = await openDriver(file);
    const row = () => driver.prepare<{ number: number; bytes: number }>("SELECT number, bytes FROM task").get();
    expect(row()?.number).toBe(2);
    const copy = newFile();
    driver.exec(`VACUUM INTO '${copy}'`);
    const heir = await open(copy);
    expect(await figures(heir)).toEqual(known);
    await heir.close();

    await accept(store, append("stream", 5, [statusEvent("stream", status(COMPLETED, 2))], { fence: 1 }));
    expect(row()).toMatchObject({ number: 6, bytes: await store.storedBytes(ALICE.owner) });
    expect((await store.stats()).events).toBe(6);
    expect(await store.prune(0, 10)).toBe(1);
    expect([(await store.stats()).events, await store.storedBytes(ALICE.owner)]).toEqual([0, 0]);
    await store.close();
    driver.close();
  });

  it("allows one end per task", async () => {
    const file = newFile();
    const driver = await openDriver(file);
    migrate(driver, 0);
    const add = driver.prepare("INSERT INTO segment (key, first, terminal, body) VALUES (1 << 31 | ?, ?, 1, '')");
    add.run(1, 1);
    expect(() => add.run(2, 2)).toThrow(/UNIQUE/);
    driver.close();
  });
});
