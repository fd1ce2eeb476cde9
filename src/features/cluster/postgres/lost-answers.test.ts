import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { TaskStore, Write, WriteResult } from "../../../core/store/contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  finished,
  MINUTE,
  message,
  readAll,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  writeOne,
} from "../../../core/store/suite/fixtures.ts";
import { openPostgresStore } from "./postgres-store.ts";
import { type LossyProxy, startLossyProxy } from "./testing/lossy-proxy.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "./testing/start-postgres.ts";

describe.runIf(hasPostgres()).each(["answer", "statement"] as const)("a write whose %s is lost", (what) => {
  let server: PostgresServer;
  let proxy: LossyProxy;
  let store: TaskStore;

  beforeAll(async () => {
    server = await startPostgres();
    proxy = await startLossyProxy(server.port);
    const url = server.url("lossy").replace(`:${server.port}`, `:${proxy.port}`);
    const listenUrl = server.url();
    store = await openPostgresStore(url, { mode: "serve", clock: systemClock, log: SILENT_LOG, listenUrl });
  });

  afterAll(async () => {
    await store.close();
    await proxy.close();
    await server.close();
  });

  /** `text` is what the statement is recognised by. */
  async function writeLosing(text: string, ...writes: Write[]): Promise<readonly WriteResult[]> {
    const lost = proxy.lose(what, text);
    const results = await store.write(writes);
    await lost;
    return results;
  }

  const text = () => uniqueId("text");

  it("is a submit", async () => {
    const [id, other] = [uniqueId(), uniqueId()];
    const idempotency = { key: uniqueId("key"), fingerprint: "print", ttlMs: MINUTE };
    const deliveries = [registration("one")];
    const writes = [submit(id, [], { idempotency, node: "n1", deliveries }), submit(other)];
    expect(await writeLosing(id, ...writes)).toMatchObject([
      { ok: true, number: 1, fence: 1, due: ["webhook"] },
      { ok: true, number: 1, fence: 0 },
    ]);
    expect(await store.findIdempotencyRecord({ ...ALICE, key: idempotency.key })).toMatchObject({ taskId: id });
    expect(await readAll(store, id)).toHaveLength(1);
    expect(await writeOne(store, { ...writes[0] } as Write)).toMatchObject({ refusal: "duplicate" });
    expect(await writeOne(store, { ...writes[1] } as Write)).toMatchObject({ refusal: "exists" });
  });

  it("is an append to the log, and the run continues", async () => {
    const [id, body] = [uniqueId(), text()];
    await accept(store, submit(id, [], { node: "n1" }));
    const chunk = (after: number, content: string) =>
      append(id, after, [chunkEvent(id, [{ text: content }])], { fence: 1 });
    expect(await writeLosing(body, chunk(1, body))).toEqual([{ ok: true, number: 2, fence: 1 }]);
    expect(await readAll(store, id)).toHaveLength(2);
    await accept(store, chunk(2, "next"));
    expect(await writeOne(store, chunk(1, body))).toEqual({ ok: false, refusal: "position" });
  });

  it("is recognised when the caller repeats it, if the database could not be asked either", async () => {
    const [id, body] = [uniqueId(), text()];
    await accept(store, submit(id, [], { node: "n1" }));
    const chunk = append(id, 1, [chunkEvent(id, [{ text: body }])], { fence: 1 });
    const lost = proxy.lose(what, body).then(() => proxy.lose(what, id));
    await expect(store.write([chunk])).rejects.toThrow();
    await lost;
    expect(await writeOne(store, chunk)).toEqual({ ok: true, number: 2, fence: 1 });
    expect(await readAll(store, id)).toHaveLength(2);
  });

  it("is the end of a task", async () => {
    const [id, body] = [uniqueId(), text()];
    await accept(store, submit(id, [], { node: "n1" }));
    const end = append(id, 1, [statusEvent(id, status(COMPLETED, 1, body))], { fence: 1 });
    expect(await writeLosing(body, end)).toEqual([{ ok: true, number: 2, fence: 1 }]);
    expect(await writeOne(store, { ...end })).toEqual({ ok: false, refusal: "terminal" });
  });

  it("takes a lease without an event", async () => {
    const [id, node] = [uniqueId(), uniqueId("node")];
    await accept(store, submit(id));
    await store.heartbeat(node, MINUTE);
    const take = append(id, 1, [], { lease: { take: node } });
    expect(await writeLosing(node, take)).toEqual([{ ok: true, number: 1, fence: 1 }]);
    expect(await store.head(id)).toMatchObject({ node, fence: 1, attempt: 1 });
  });

  it("is a discard", async () => {
    const [id, body] = [uniqueId(), text()];
    await accept(store, submit(id, [], { node: "n1" }));
    const discard: Write = { kind: "discard", id, fence: 1, expect: 1, reply: message(body) };
    expect(await writeLosing(body, discard)).toEqual([{ ok: true, number: 1, fence: 1 }]);
    expect(await store.head(id)).toBeUndefined();
    expect(await writeOne(store, { ...discard })).toEqual({ ok: false, refusal: "missing" });
  });

  it("is the progress of a delivery", async () => {
    const [id, error] = [uniqueId(), text()];
    await accept(store, finished(id, 1, { deliveries: [registration("r", { route: error, address: "{}" })] }));
    const query = { node: "n", route: error, max: 1, ttlMs: MINUTE, perLane: 1, busy: new Map() };
    const [claimed] = (await store.claimDeliveries(query)).claims;
    if (claimed === undefined) throw new Error("expected a claim");
    const { place, claim } = claimed;
    const next = { kind: "retry", inMs: MINUTE, error } as const;
    const progress: Write = { kind: "delivery-progress", id, place, claim, cursor: 1, next };
    expect(await writeLosing(error, progress)).toMatchObject([{ ok: true, number: 2 }]);
    expect(await store.pendingDeliveries({ limit: 1, taskId: id })).toMatchObject([{ attempts: 1, cursor: 1 }]);
  });

  it("changes a record that is as it was", async () => {
    const [key, value] = [uniqueId("key"), text()];
    const put: Write = { kind: "record-put", space: "s", key, value, ifValue: null };
    expect(await writeLosing(value, put)).toEqual([{ ok: true, number: 0, fence: 0 }]);
    expect(await writeOne(store, { ...put })).toEqual({ ok: false, refusal: "position" });
  });
});
