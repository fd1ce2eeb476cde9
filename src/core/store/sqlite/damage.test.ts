import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changeStore, leavesOf, overwritePage } from "../../../../test/support/corrupt-store.ts";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import type { TaskStore } from "../contract.ts";
import { StoreError } from "../errors.ts";
import {
  ALICE,
  accept,
  append,
  chunkEvent,
  EPOCH,
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
  walk,
} from "../suite/fixtures.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";
import { examineFile } from "./examine.ts";
import { migrate } from "./schema.ts";
import { createSqliteStore, openSqliteStore } from "./sqlite-store.ts";

const clock = { now: () => Date.now(), after: () => () => {} };
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "store-damage-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const newFile = () => join(folder, `${uniqueId("data")}.db`);

const open = (file: string, log: Log = SILENT_LOG) => openSqliteStore(file, { mode: "serve", clock, log });

/** What each damage named, in the order it was logged. */
function listening(): { readonly log: Log; readonly named: string[] } {
  const named: string[] = [];
  return { named, log: { ...SILENT_LOG, error: (fields) => named.push(String((fields as { what?: string }).what)) } };
}

const IDS = ["bad", "good", "other"];
const KEY = { key: "key", fingerprint: "print", ttlMs: MINUTE };

/** Something in every table and every column. */
async function fill(store: TaskStore): Promise<void> {
  for (const [at, id] of IDS.entries()) {
    const idempotency = { ...KEY, key: `${KEY.key} ${id}` };
    await accept(store, submit(id, [], { node: "n", idempotency, deliveries: [registration("c", { secret: "{}" })] }));
    await accept(store, { kind: "remember", id, fence: 1, key: "k", value: '"v"' });
    const working = statusEvent(id, status(WORKING, at, "yes"));
    await accept(store, append(id, 1, [working, chunkEvent(id, [{ text: "hällo" }])], { fence: 1 }));
    await accept(store, finished(`old ${id}`, at));
    await store.list(listQuery(ALICE, { limit: 1 }));
    await accept(store, append(id, 3, [statusEvent(id, status(WORKING, at, "yes"))], { fence: 1 }));
    await accept(store, { kind: "record-put", space: "s", key: id, value: "1", ttlMs: MINUTE });
  }
  await accept(store, { kind: "discard", id: (await answered(store)).id, fence: 1, reply: message("plain") });
  await store.compact(0, 10);
}

async function answered(store: TaskStore) {
  const write = submit("answered", [], { node: "n", idempotency: KEY });
  await accept(store, write);
  return write;
}

const claims = { node: "m", route: "webhook", max: 10, ttlMs: 1_000, perLane: 10, busy: new Map<string, number>() };

/** Everything that can be asked. Returns the errors; what does not throw must answer in the form of the contract. */
async function tour(store: TaskStore): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const ask = (asked: Promise<unknown>) => asked.catch((error: unknown) => errors.push(error));
  await ask(store.heartbeat("m", 1_000));
  await ask(store.claim("m", [ALICE.agent], 10));
  for (const id of [...IDS, ...IDS.map((name) => `old ${name}`)]) {
    await ask(store.head(id));
    await ask(store.snapshot(id, EVERYTHING));
    await ask(store.snapshot(id, { history: 1, artifacts: false }));
    await ask(store.read([{ id, after: 0 }], 10));
    await ask(store.memory(id));
    await ask(store.delivery(id, "webhooks", "c"));
    await ask(store.deliveries(id, { group: "webhooks", limit: 10 }));
    await ask(store.record("s", id));
    await ask(store.findIdempotencyRecord({ ...ALICE, key: `key ${id}` }));
    await ask(store.write([{ kind: "request-cancel", id }]));
  }
  await ask(store.numbers(IDS));
  await ask(store.findIdempotencyRecord({ ...ALICE, key: KEY.key }));
  for (const more of [{}, { contextId: "context of bad" }, { state: WORKING } as const, { since: EPOCH }]) {
    await ask(walk(store, listQuery(ALICE, { limit: 2, history: 5, ...more })));
    await ask(walk(store, listQuery(ALICE, { limit: 2, artifacts: true, ...more })));
  }
  await ask(store.claimDeliveries(claims));
  await ask(store.pendingDeliveries({ limit: 10 }));
  await ask(store.redeliver({}));
  await ask(store.records("s", { limit: 10 }));
  await ask(store.write([{ kind: "record-put", space: "s", key: "new", value: "1", keep: 3 }]));
  await ask(store.storedBytes(ALICE.owner));
  await ask(store.stats());
  await ask(store.compact(0, 10));
  await ask(store.prune(MINUTE, 10));
  return errors;
}

async function columnsOf(type: string): Promise<readonly (readonly [table: string, column: string])[]> {
  const driver = await openDriver(":memory:");
  migrate(driver, 0);
  const sql = `SELECT s.name || '.' || c.name AS place FROM sqlite_schema s, pragma_table_info(s.name) c
    WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' AND c.type = '${type}' AND NOT (c.pk AND s.sql NOT LIKE '%WITHOUT ROWID%')`;
  const places = driver.prepare<{ place: string }>(sql).all();
  driver.close();
  return places.map(({ place }) => place.split(".") as [string, string]);
}

const OF_TASK = "task = (SELECT seq FROM task WHERE id = 'bad')";
const KEYED_BY_TASK = OF_TASK.replace("task", "key >> 31");
const ROWS: Readonly<Record<string, string>> = {
  task: "id = 'bad'",
  idempotency: "task_id = 'bad'",
  scope: "1",
  store: "1",
  counter: "1",
  owner_usage: "1",
  record: "key = 'bad'",
  segment: KEYED_BY_TASK,
  snapshot: KEYED_BY_TASK,
};

describe("a text that is not UTF-8", async () => {
  it.each([...(await columnsOf("TEXT")), ...(await columnsOf("INTEGER"))])(
    "in %s.%s ends nothing, and keeps nothing else from being read",
    async (table, column) => {
      const file = newFile();
      const before = await open(file);
      await fill(before);
      await before.close();
      const where = ROWS[table] ?? OF_TASK;
      await changeStore(file, `UPDATE OR IGNORE ${table} SET ${column} = CAST(x'41ff42' AS TEXT) WHERE ${where}`);
      const store = await open(file);
      const errors = await tour(store);
      for (const error of errors) expect(error).toMatchObject({ name: "StoreError", code: "damaged" });
      if (table !== "scope") {
        expect(await walk(store, listQuery(ALICE, { artifacts: true }))).toEqual(
          expect.arrayContaining(["good", "other", "old good", "old bad", "old other"]),
        );
        expect(await store.snapshot("good", EVERYTHING)).toMatchObject({ number: 4, task: { id: "good" } });
      }
      await store.close();
    },
  );

  it("is never given to a driver to decode: no statement reads text", async () => {
    const inner = await openDriver(":memory:");
    migrate(inner, 0);
    const texts: string[] = [];
    const look = <Row extends object>(sql: string, rows: readonly Row[]): void => {
      for (const row of rows) if (Object.values(row).some((value) => typeof value === "string")) texts.push(sql);
    };
    const driver: SqliteDriver = {
      ...inner,
      prepare<Row extends object>(sql: string) {
        const statement = inner.prepare<Row>(sql);
        return {
          run: statement.run,
          get: (...values) => {
            const row = statement.get(...values);
            if (row !== undefined) look(sql, [row]);
            return row;
          },
          all: (...values) => {
            const rows = statement.all(...values);
            look(sql, rows);
            return rows;
          },
        };
      },
    };
    const store = createSqliteStore(driver, "file", { clock, log: SILENT_LOG }, () => {});
    await fill(store);
    expect(await tour(store)).toEqual([]);
    expect(texts).toEqual([]);
    await store.close();
  });
});

describe("a damaged task", () => {
  async function damaged(log: Log): Promise<TaskStore> {
    const file = newFile();
    const before = await open(file);
    await fill(before);
    await before.close();
    await changeStore(file, `UPDATE segment SET body = CAST(x'7b22ff' AS TEXT) WHERE ${KEYED_BY_TASK}`);
    return open(file, log);
  }

  it("is left out of lists and named in the log, once", async () => {
    const { log, named } = listening();
    const store = await damaged(log);
    const query = listQuery(ALICE, { history: 5 });
    for (let time = 0; time < 2; time++) expect(await walk(store, query)).not.toContain("bad");
    expect(named).toEqual(["task bad"]);
    await expect(store.snapshot("bad", EVERYTHING)).rejects.toThrow(/^Task bad in .* cannot be read: /);
    await store.close();
  });

  it("is missing for those who write to it, and does not fail its neighbours", async () => {
    const file = newFile();
    const before = await open(file);
    await fill(before);
    await before.close();
    await changeStore(file, "UPDATE task SET node = CAST(x'ff' AS TEXT) WHERE id = 'bad'");
    const store = await open(file);
    const chunk = (id: string) => append(id, 4, [chunkEvent(id, [{ text: "more" }])]);
    expect(await store.write([chunk("good"), chunk("bad"), chunk("other")])).toEqual([
      { ok: true, number: 5, fence: 1 },
      { ok: false, refusal: "missing" },
      { ok: true, number: 5, fence: 1 },
    ]);
    await store.close();
  });

  it("is in no other's way when logs are compacted, tasks deleted and leases taken over", async () => {
    const file = newFile();
    const before = await open(file);
    for (const id of IDS) await accept(before, finished(id), submit(`open ${id}`, [], { node: "n" }));
    await before.close();
    await changeStore(
      file,
      `UPDATE segment SET body = CAST(x'ff' AS TEXT) WHERE ${KEYED_BY_TASK}`,
      "UPDATE task SET status = CAST(x'ff' AS TEXT) WHERE id = 'open bad'",
    );
    const store = await open(file);
    await store.heartbeat("m", 1_000);
    const leases = await store.claim("m", [ALICE.agent], 10);
    expect(leases.map(({ head }) => head.id)).toEqual(["open good", "open other"]);
    for (let left = 2; left > 0; left--) expect(await store.compact(0, 3)).toBe(left === 2 ? 3 : 0);
    const reads = await store.read([{ id: "good", after: 0 }], 1);
    expect(reads).toMatchObject([{ kind: "compacted" }]);
    expect(await store.prune(0, 10)).toBe(2);
    await store.close();
  });
});

describe("a damaged page", () => {
  const COUNT = 300;
  const id = (at: number) => `task ${at}`;

  async function filled(): Promise<string> {
    const file = newFile();
    const store = await open(file);
    for (let at = 0; at < COUNT; at++) await accept(store, finished(id(at), at));
    await store.close();
    return file;
  }

  it.each([0x00, 0xff])("of tasks, filled with %i, hides those that are on it and no others", async (fill) => {
    const file = await filled();
    const leaves = await leavesOf(file, "task");
    overwritePage(file, leaves[2] as number, fill);
    const { log, named } = listening();
    const store = await open(file, log);
    const shown = await walk(store, listQuery(ALICE, { limit: 7 }));
    expect(shown.length).toBeLessThan(COUNT);
    expect(shown.length).toBeGreaterThan(COUNT / 2);
    const gone = Array.from({ length: COUNT }, (_, at) => id(at)).filter((one) => !shown.includes(one));
    expect(new Set(named)).toEqual(new Set(gone.map((one) => `task ${one}`)));
    for (const one of gone) await expect(store.snapshot(one, EVERYTHING)).rejects.toBeInstanceOf(StoreError);
    expect(await store.snapshot(shown[0] as string, EVERYTHING)).toMatchObject({ number: 2 });
    await store.close();
    const { damage, tasks } = await examineFile(file, clock, () => {});
    expect(tasks).toBe(shown.length);
    expect(damage.map(({ what }) => what)).toEqual(expect.arrayContaining(["table task", ...new Set(named)]));
  });

  it("of the index that lists are made from is made up for by the table", async () => {
    const file = await filled();
    const driver = await openDriver(file);
    const sql = "SELECT rootpage AS page FROM sqlite_schema WHERE name = 'task_by_time'";
    const { page = 0 } = driver.prepare<{ page: number }>(sql).get() ?? {};
    driver.close();
    overwritePage(file, page, 0xff);
    const store = await open(file);
    expect(await walk(store, listQuery(ALICE, { limit: 50 }))).toHaveLength(COUNT);
    await store.close();
  });
});
