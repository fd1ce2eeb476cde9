import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { TaskStore } from "../../../core/store/contract.ts";
import { openStore } from "../../../core/store/open.ts";
import {
  ALICE,
  accept,
  append,
  chunkEvent,
  EVERYTHING,
  expectCounter,
  finished,
  INPUT_REQUIRED,
  listQuery,
  registration,
  status,
  statusEvent,
  submit,
  WORKING,
  walk,
  writeOne,
} from "../../../core/store/suite/fixtures.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "../postgres/testing/start-postgres.ts";
import { copyStore } from "./copy-store.ts";

const ENDED = Array.from({ length: 1_200 }, (_, index) => `ended-${String(index).padStart(4, "0")}`);
const IDS = ["running", "asking", "compacted", "odd \0 id \ud800", ...ENDED.slice(0, 3)];
const PUT = { kind: "delivery-put", ...ALICE } as const;

async function fill(store: TaskStore): Promise<void> {
  await accept(store, finished("compacted", 5));
  await store.compact(0, 10);
  await accept(store, ...ENDED.map((id, index) => finished(id, (index * 7) % 1_000)));
  const idempotency = { key: "key", fingerprint: "print", ttlMs: 3_600_000 };
  const running = submit("running", [statusEvent("running", status(WORKING, 9))], { node: "n1", idempotency });
  await accept(store, running, submit("asking"), finished("odd \0 id \ud800", 2));
  await accept(store, append("running", 2, [chunkEvent("running", [{ text: "\u0000 一" }], false)], { fence: 1 }));
  await accept(store, append("running", 3, [chunkEvent("running", [{ text: "two" }])], { fence: 1 }));
  await accept(store, { kind: "remember", id: "running", fence: 1, key: "step", value: '"one"' });
  await accept(store, append("asking", 1, [statusEvent("asking", status(INPUT_REQUIRED, 3, "What?"))]));
  await accept(store, { ...PUT, id: "running", delivery: registration("one", { secret: '{"token":"t"}' }), after: 0 });
  await accept(store, { ...PUT, id: "asking", delivery: registration("two") });
  await accept(store, { kind: "record-put", space: "logins", key: "phone", value: "{}" });
  await accept(store, { kind: "record-put", space: "logins", key: "other", value: "1", ttlMs: 3_600_000 });
}

/** All that anyone can find out about a store. */
async function lookAt(store: TaskStore) {
  const tasks = [];
  for (const id of IDS) {
    const head = await store.head(id);
    const [read] = await store.read([{ id, after: head?.floor ?? 0 }], 100);
    tasks.push({
      // Who ran it is gone, and its lease with it.
      head: { ...head, node: undefined },
      events: read?.kind === "entries" ? read.entries.map(({ number, json }) => [number, json]) : read,
      snapshot: await store.snapshot(id, EVERYTHING),
      memory: [...(await store.memory(id))],
      webhooks: await store.deliveries(id, { group: "webhooks", limit: 10 }),
    });
  }
  return {
    tasks,
    list: await walk(store, listQuery(ALICE, { limit: 100 })),
    key: await store.findIdempotencyRecord({ ...ALICE, key: "key" }),
    records: await store.records("logins", { limit: 10 }),
    pending: (await store.pendingDeliveries({ limit: 10 })).map(({ dueAt: _dueAt, ...rest }) => rest),
  };
}

describe.runIf(hasPostgres())("copying a store", () => {
  let server: PostgresServer;
  let folder = "";
  let source = "";
  const open = (spec: string) => openStore(spec, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });

  async function withStore<T>(spec: string, use: (store: TaskStore) => Promise<T>): Promise<T> {
    const store = await open(spec);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  }

  beforeAll(async () => {
    server = await startPostgres();
    folder = await mkdtemp(join(tmpdir(), "copy-"));
    source = "sqlite:source.db";
    await withStore(source, fill);
  });

  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true });
  });

  it("keeps every number, place in lists, key, webhook and record, from SQLite to PostgreSQL and on to another", async () => {
    const before = await withStore(source, lookAt);
    const [first, second] = [server.url("first"), server.url("second")];
    const { rows } = await copyStore(source, first, { baseDirectory: folder });
    expect(rows).toMatchObject({ task: ENDED.length + 4, record: 2, delivery: 2, idempotency: 1, memory: 1 });
    await copyStore(first, second, { baseDirectory: folder });
    expect(await withStore(first, lookAt)).toEqual(before);
    expect(await withStore(second, lookAt)).toEqual(before);
  });

  it("leaves tasks that were running to the first node that claims them, and goes on with new ones", async () => {
    const target = server.url("claimed");
    await copyStore(source, target, { baseDirectory: folder });
    await withStore(target, async (store) => {
      await store.heartbeat("n2", 60_000);
      const leases = await store.claim("n2", [ALICE.agent], 10);
      expect(leases.map(({ head, fence }) => [head.id, head.number, fence])).toContainEqual(["running", 4, 2]);
      await accept(store, append("running", 4, [statusEvent("running", status(WORKING, 11))], { fence: 2 }));
      await accept(store, finished("new", 2_000), { ...PUT, id: "running", delivery: registration("three") });
      expect((await walk(store, listQuery(ALICE, { limit: 100 })))[0]).toBe("new");
      const stale = append("running", 5, [chunkEvent("running", [{ text: "late" }])], { fence: 1 });
      expect(await writeOne(store, stale)).toEqual({ ok: false, refusal: "fenced" });
      await expectCounter(async () => (await store.stats()).tasks).toBe(ENDED.length + 5);
      expect(await store.storedBytes(ALICE.owner)).toBeGreaterThan(0);
    });
  });

  it("belongs to the cluster that serves the target first, before the copy or after it", async () => {
    const serve = async (url: string, name: string) => {
      const options = { baseDirectory: folder, clock: systemClock, log: SILENT_LOG, cluster: { name } };
      await (await openStore(url, options)).close();
    };
    const [fresh, named] = [server.url("fresh"), server.url("named")];
    await copyStore(source, fresh, { baseDirectory: folder });
    await serve(named, "prod");
    await copyStore(source, named, { baseDirectory: folder });
    for (const url of [fresh, named]) {
      await serve(url, "prod");
      await expect(serve(url, "test")).rejects.toThrow(/belongs to the cluster "prod", and this one is "test"/);
    }
  });

  it("refuses a store that is not empty, and changes neither", async () => {
    const target = server.url("filled");
    await withStore(target, (store) => accept(store, finished("mine")));
    await expect(copyStore(source, target, { baseDirectory: folder })).rejects.toThrow(/is not empty/);
    await withStore(target, async (store) => expect((await store.head("mine"))?.number).toBe(2));
  });

  it("refuses a file that a server uses, and kinds of stores that cannot be copied", async () => {
    await withStore(source, async () => {
      await expect(copyStore(source, server.url("busy"), { baseDirectory: folder })).rejects.toThrow(/in use/);
    });
    await expect(copyStore("memory:", server.url("none"), { baseDirectory: folder })).rejects.toThrow(
      /cannot be copied/,
    );
    await expect(copyStore(source, "sqlite:other.db", { baseDirectory: folder })).rejects.toThrow(
      /cannot be copied to/,
    );
  });
});
