import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TransferListItem, Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startThread } from "../../../agents/threads.ts";
import { type Log, SILENT_LOG } from "../../../model/ports.ts";
import type { TaskStore } from "../../contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  EVERYTHING,
  finished,
  listQuery,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  walk,
} from "../../suite/fixtures.ts";
import { Connection } from "../connection.ts";
import { openDriver } from "../driver.ts";
import { migrate } from "../schema.ts";
import { openSqliteStore } from "../sqlite-store.ts";
import type { StartThread } from "./large-writes.ts";

const clock = { now: () => Date.now(), after: () => () => {} };
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "store-large-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Called with each commit that the thread is to make. */
type Interceptor = (worker: Worker, forward: () => void) => void;

const forwarding: Interceptor = (_, forward) => forward();

/** A store whose commits on the thread pass `thread.intercept`. */
async function open({ log = SILENT_LOG, file = join(folder, `${uniqueId("data")}.db`) } = {}) {
  const thread = { intercept: forwarding, started: 0 };
  const start: StartThread = (module, options) => {
    const worker = startThread(module, options);
    thread.started++;
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (message: { kind: string }, transfer: readonly TransferListItem[] = []) => {
      const forward = () => post(message, transfer);
      if (message.kind === "commit") thread.intercept(worker, forward);
      else forward();
    };
    return worker;
  };
  const store = await openSqliteStore(file, { mode: "serve", clock, log, thread: { start } });
  return { store, thread, file };
}

const text = "grüße ".repeat(100_000);
const large = (id: string) => submit(id, [chunkEvent(id, [{ text }]), statusEvent(id, status(COMPLETED, 1))]);

async function textOf(store: TaskStore, id: string): Promise<string | undefined> {
  const [part] = (await store.snapshot(id, EVERYTHING))?.task.artifacts?.[0]?.parts ?? [];
  return part !== undefined && "text" in part ? part.text : undefined;
}

/** Holds the next commit. Resolves when it comes, with what lets it go. */
function hold(thread: { intercept: Interceptor }): Promise<() => void> {
  return new Promise((resolve) => {
    thread.intercept = (_, forward) => {
      thread.intercept = forwarding;
      resolve(forward);
    };
  });
}

describe("a large write", () => {
  it("is made by the thread, which small ones do not start", async () => {
    const { store, thread } = await open();
    await accept(store, finished("small"));
    expect(thread.started).toBe(0);
    await accept(store, large("large"));
    await accept(store, large("another"));
    expect(thread.started).toBe(1);
    expect(await textOf(store, "large")).toBe(text);
    expect(await store.storedBytes(ALICE.owner)).toBeGreaterThan(2 * Buffer.byteLength(text));
    await store.close();
  });

  it("lets others be served until it is committed, as if there were none, and then shows as a whole", async () => {
    const { store, thread } = await open();
    await accept(store, submit("task", [statusEvent("task", status(WORKING, 0))], { node: "n" }), finished("other", 2));
    const holding = hold(thread);
    const done: string[] = [];
    const end = [chunkEvent("task", [{ text }]), statusEvent("task", status(COMPLETED, 9))];
    const written = accept(store, large("large"), append("task", 2, end, { fence: 1 })).then(() => done.push("large"));
    const release = await holding;
    expect(await store.numbers(["task", "large", "other"])).toEqual([2, 0, 2]);
    expect(await store.snapshot("task", EVERYTHING)).toMatchObject({ number: 2, task: { status: { state: WORKING } } });
    const first = await store.list(listQuery(ALICE, { limit: 1 }));
    const small = accept(store, finished("small", 3)).then(() => done.push("small"));
    expect(await store.head("small")).toBeUndefined();
    expect(done).toEqual([]);
    release();
    await Promise.all([written, small]);
    expect(done).toEqual(["large", "small"]);
    expect(await store.numbers(["task", "large", "small"])).toEqual([4, 3, 2]);
    // The list began before: the task that moved is where it was then, and only there.
    const rest = await walk(store, listQuery(ALICE, { limit: 1, ...(first.next && { after: first.next }) }));
    expect([...first.tasks.map(({ id }) => id), ...rest]).toEqual(["other", "task"]);
    await store.close();
  });

  it("that is refused writes nothing", async () => {
    const { store } = await open();
    await accept(store, large("task"));
    const before = await store.stats();
    expect(await store.write([large("task")])).toEqual([{ ok: false, refusal: "exists" }]);
    expect((await store.stats()).events).toBe(before.events);
    await store.close();
  });

  it("fails with the reason if the thread cannot make it, and can be made later", async () => {
    const { store, thread } = await open();
    thread.intercept = (worker) => worker.emit("message", { kind: "failed", message: "disk full", code: 13 });
    await expect(store.write([large("task")])).rejects.toMatchObject({ name: "StoreError", code: "full" });
    await expect(store.checkWritable?.()).rejects.toMatchObject({ code: "full" });
    expect(await store.numbers(["task"])).toEqual([0]);
    thread.intercept = forwarding;
    await accept(store, large("task"));
    expect(await textOf(store, "task")).toBe(text);
    await store.close();
  });

  it("fails if the thread ends meanwhile, and the next is made by another", async () => {
    const { store, thread } = await open();
    thread.intercept = (worker) => void worker.terminate();
    await expect(store.write([large("task")])).rejects.toMatchObject({ name: "StoreError", code: "io" });
    thread.intercept = forwarding;
    await accept(store, large("task"));
    expect(thread.started).toBe(2);
    await store.close();
  });

  it("is decided again if another process changed a delivery meanwhile", async () => {
    const { store, thread, file } = await open();
    const delivery = registration("c");
    await accept(store, submit("task", [], { node: "n", deliveries: [delivery] }));
    const query = { node: "n", route: "webhook", max: 1, ttlMs: 60_000, perLane: 1, busy: new Map<string, number>() };
    const [claim] = (await store.claimDeliveries(query)).claims;
    const holding = hold(thread);
    const { place = 0, claim: held = 0 } = claim ?? {};
    const progress = { kind: "delivery-progress", id: "task", place, claim: held, cursor: 1 } as const;
    const writing = store.write([large("large"), { ...progress, next: { kind: "release" } }]);
    const release = await holding;
    const beside = await openSqliteStore(file, { mode: "repair", clock, log: SILENT_LOG });
    expect(await beside.redeliver({ taskId: "task", from: 1 })).toHaveLength(1);
    await beside.close();
    release();
    expect(await writing).toMatchObject([
      { ok: true, number: 3 },
      { ok: false, refusal: "fenced" },
    ]);
    expect(await textOf(store, "large")).toBe(text);
    await store.close();
  });

  it("is decided again if another process changed what a statement of it returns", async () => {
    const { store, thread, file } = await open();
    const held = registration("c", { heldBy: { node: "n", ttlMs: 60_000 } });
    await accept(store, submit("task", [], { node: "n", deliveries: [held] }));
    const holding = hold(thread);
    const chunk = chunkEvent("task", [{ text }]);
    const writing = store.write([append("task", 1, [chunk], { fence: 1, deliveries: [held] })]);
    const release = await holding;
    // Due for long, so that nothing but the number of the claim shows the change.
    const beside = await openSqliteStore(file, { mode: "repair", clock: { ...clock, now: () => 0 }, log: SILENT_LOG });
    expect(await beside.redeliver({ taskId: "task", from: 1 })).toHaveLength(1);
    await beside.close();
    release();
    const [written] = await writing;
    const [claimed] = (written?.ok === true && written.held) || [];
    const { place = 0, claim = 0 } = claimed ?? {};
    const progress = { kind: "delivery-progress", id: "task", place, claim, cursor: 2 } as const;
    expect(await store.write([{ ...progress, next: { kind: "release" } }])).toMatchObject([{ ok: true }]);
    await store.close();
  });

  it("whose thread dies before it answers leaves lists complete", async () => {
    const { store, thread } = await open();
    const others = [finished("a", 2), finished("b", 3), finished("c", 4)];
    await accept(store, submit("moving", [statusEvent("moving", status(WORKING, 0))], { node: "n" }), ...others);
    thread.intercept = (worker, forward) => {
      const emit = worker.emit.bind(worker);
      worker.emit = (name, ...values: unknown[]) => {
        if (name !== "message") return emit(name, ...(values as []));
        void worker.terminate();
        return true;
      };
      forward();
    };
    await expect(store.write([large("large")])).rejects.toMatchObject({ code: "io" });
    expect(await store.numbers(["large"])).toEqual([3]);
    const first = await store.list(listQuery(ALICE, { limit: 2 }));
    await accept(store, append("moving", 2, [statusEvent("moving", status(COMPLETED, 9))], { fence: 1 }));
    const rest = await walk(store, listQuery(ALICE, { limit: 2, ...(first.next && { after: first.next }) }));
    expect([...first.tasks.map(({ id }) => id), ...rest].sort()).toEqual(["a", "b", "c", "large", "moving"]);
    await store.close();
  });

  it("is finished before the store is closed", async () => {
    const { store, thread, file } = await open();
    const holding = hold(thread);
    const writing = accept(store, large("task"));
    const release = await holding;
    const closing = store.close();
    release();
    await Promise.all([writing, closing]);
    const { store: again } = await open({ file });
    expect(await textOf(again, "task")).toBe(text);
    await again.close();
  });
});

it("without a thread large writes are made all the same, and a person is told once", async () => {
  const told: string[] = [];
  const log: Log = { ...SILENT_LOG, warn: (_, message) => told.push(message) };
  const file = join(folder, `${uniqueId("data")}.db`);
  const start: StartThread = (_, options) => startThread("core/store/sqlite/thread/missing", options);
  const store = await openSqliteStore(file, { mode: "serve", clock, log, thread: { start } });
  await accept(store, large("one"));
  await accept(store, large("two"));
  expect(await textOf(store, "two")).toBe(text);
  expect(told).toEqual(["Large messages are stored without a thread and hold up other callers."]);
  await store.close();
});

it("a read beside a large write fails with what the disk reports, though SQLite has ended the transaction by then", async () => {
  const driver = await openDriver(":memory:");
  migrate(driver, 0);
  const connection = new Connection(driver, ":memory:", { clock, log: SILENT_LOG });
  const failingRead = () => {
    driver.exec("ROLLBACK");
    throw new Error("disk I/O error");
  };
  expect(() => connection.readConsistently(failingRead)).toThrow("disk I/O error");
  expect(connection.readConsistently(() => "read")).toBe("read");
  driver.close();
});
