import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { DeliveryClaim, TaskStore, Write, WriteResult } from "../../../core/store/contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  finished,
  MINUTE,
  readAll,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  writeOne,
} from "../../../core/store/suite/fixtures.ts";
import { openDatabase } from "./connection.ts";
import { openPostgresStore } from "./postgres-store.ts";
import { prepareSchema } from "./schema.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "./testing/start-postgres.ts";

const ROUNDS = 25;

const LIVING = 60_000;
const DEAD = -1;

const outcomes = (results: readonly WriteResult[]) =>
  results.map((result) => (result.ok ? "ok" : result.refusal)).sort();

describe.runIf(hasPostgres())("nodes that share a schema", () => {
  let server: PostgresServer;
  let one: TaskStore;
  let two: TaskStore;

  const open = (schema = "shared") =>
    openPostgresStore(server.url(schema), { mode: "serve", clock: systemClock, log: SILENT_LOG });

  beforeAll(async () => {
    server = await startPostgres();
    // At the same moment: one of them makes the tables.
    [one, two] = await Promise.all([open(), open()]);
  });

  afterAll(async () => {
    await Promise.all([one.close(), two.close()]);
    await server.close();
  });

  it("append to the same tasks in turn, each number once", async () => {
    const ids = Array.from({ length: 4 }, () => uniqueId());
    await accept(one, ...ids.map((id) => submit(id)));
    let accepted = 0;
    async function writer(store: TaskStore, backwards: boolean): Promise<void> {
      for (let round = 0; round < ROUNDS; round++) {
        const numbers = await store.numbers(ids);
        const writes = ids.map((id, at) => append(id, numbers[at] as number, [chunkEvent(id, [{ text: "a" }])]));
        const results = await store.write(backwards ? writes.reverse() : writes);
        accepted += results.filter(({ ok }) => ok).length;
      }
    }
    await Promise.all([writer(one, false), writer(two, true), writer(one, true), writer(two, false)]);
    const numbers = await two.numbers(ids);
    expect(numbers.reduce((sum, number) => sum + number, 0)).toBe(accepted + ids.length);
    expect(accepted).toBeGreaterThanOrEqual(ROUNDS * ids.length);
    for (const [at, id] of ids.entries()) expect(await readAll(one, id)).toHaveLength(numbers[at] as number);
  });

  it("let one of two submits with a key win, and the other learns whose it is", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const scope = uniqueScope();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      const [first, second, neighbour] = [uniqueId(), uniqueId(), uniqueId()];
      const [[left], [right, beside]] = await Promise.all([
        one.write([submit(first, [], { ...scope, idempotency })]),
        two.write([submit(second, [], { ...scope, idempotency }), submit(neighbour, [], scope)]),
      ]);
      expect(outcomes([left as WriteResult, right as WriteResult])).toEqual(["duplicate", "ok"]);
      expect(beside).toMatchObject({ ok: true });
      const [winner, loser, refused] = left?.ok ? [first, second, right] : [second, first, left];
      expect(refused).toMatchObject({ record: { taskId: winner, fingerprint: "print" } });
      expect(await one.head(loser)).toBeUndefined();
    }
  });

  it("let one of two submits with an id win", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const id = uniqueId();
      const idempotency = { key: uniqueId("key"), fingerprint: "print", ttlMs: MINUTE };
      const [left, right] = await Promise.all([
        writeOne(one, submit(id, [], { ...uniqueScope(), idempotency })),
        writeOne(two, submit(id)),
      ]);
      expect(outcomes([left, right])).toEqual(["exists", "ok"]);
      expect(await two.numbers([id])).toEqual([1]);
    }
  });

  it("take a repeated message to a task once", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const id = uniqueId();
      const idempotency = { key: uniqueId("key"), fingerprint: "print", ttlMs: MINUTE };
      await accept(one, submit(id));
      const message = append(id, 1, [statusEvent(id, status(WORKING, 1))], { idempotency });
      const results = await Promise.all([writeOne(one, message), writeOne(two, message)]);
      expect(outcomes(results)).toEqual(["duplicate", "ok"]);
      expect(await one.numbers([id])).toEqual([2]);
    }
  });

  it("take one key for one of two tasks, also in one group", async () => {
    const scope = uniqueScope();
    const ids = [uniqueId(), uniqueId()];
    const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
    await accept(one, ...ids.map((id) => submit(id, [], scope)));
    const messages = ids.map((id) => append(id, 1, [statusEvent(id, status(WORKING, 1))], { idempotency }));
    expect(outcomes(await one.write(messages))).toEqual(["duplicate", "ok"]);
  });

  it("end a task once", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const id = uniqueId();
      await accept(one, submit(id, [], { node: "n1" }));
      const end = (at: number) => append(id, 1, [statusEvent(id, status(COMPLETED, at))]);
      const results = await Promise.all([one, two, one, two].map((store, at) => writeOne(store, end(at))));
      expect(outcomes(results)).toEqual(["ok", "terminal", "terminal", "terminal"]);
      expect(await readAll(two, id)).toHaveLength(2);
    }
  });

  it("know of each other's changes to a task that one of them runs", async () => {
    const id = uniqueId();
    const node = uniqueId("node");
    const chunk = (after: number) => append(id, after, [chunkEvent(id, [{ text: "a" }])], { fence: 1 });
    await accept(one, submit(id, [], { node }));
    await accept(one, chunk(1));
    await accept(two, { kind: "request-cancel", id });
    await accept(one, chunk(2));
    await accept(two, append(id, 3, [statusEvent(id, status(WORKING, 1))]));
    expect(await writeOne(one, chunk(3))).toEqual({ ok: false, refusal: "position" });
    await accept(one, chunk(4));
    expect(await one.heartbeat(node, LIVING)).toEqual([id]);
    await accept(two, { kind: "request-cancel", id, take: uniqueId("node") });
    expect(await writeOne(one, chunk(5))).toEqual({ ok: false, refusal: "fenced" });
  });

  it("leave the leases of living nodes alone, also at the first heartbeat of another process", async () => {
    const agent = uniqueId("agent");
    const [id, node] = [uniqueId(), uniqueId("node")];
    await one.heartbeat(node, LIVING);
    await accept(one, submit(id, [], { agent, node }));
    const third = await open();
    await third.heartbeat("another", LIVING);
    expect(await third.claim("another", [agent], 9)).toEqual([]);
    expect(await third.head(id)).toMatchObject({ node, fence: 1 });
    await third.close();
  });

  it("divide what a dead node leaves, each task once, and refuse what it still writes", async () => {
    const agent = uniqueId("agent");
    const node = uniqueId("node");
    const ids = Array.from({ length: 20 }, () => uniqueId());
    await accept(one, ...ids.map((id) => submit(id, [], { agent, node })));
    await one.heartbeat(node, DEAD);
    const claims = await Promise.all([one, two, one, two].map((store, at) => store.claim(`heir ${at}`, [agent], 7)));
    expect(
      claims
        .flat()
        .map(({ head }) => head.id)
        .sort(),
    ).toEqual(ids.sort());
    const late = ids.map((id) => append(id, 1, [chunkEvent(id, [{ text: "zombie" }])], { fence: 1 }));
    expect(new Set(outcomes(await one.write(late)))).toEqual(new Set(["fenced"]));
  });

  it("take over from a process that is gone before its lease ends, by the lock that it held", async () => {
    const agent = uniqueId("agent");
    const [id, node] = [uniqueId(), uniqueId("node")];
    await one.heartbeat(node, LIVING);
    await accept(one, submit(id, [], { agent, node }));
    expect(await two.claim("heir", [agent], 9)).toEqual([]);
    // As the row of a process looks that held lock 1 and sent its heartbeat two seconds ago.
    await server.run(`UPDATE shared.node SET lock_key = 1, beat_at = beat_at - 2000, session = 0 WHERE id = '${node}'`);
    const options = { timeout: 30_000 };
    await expect.poll(() => two.claim("heir", [agent], 9), options).toMatchObject([{ fence: 2, head: { id } }]);
    expect(await two.nodes?.()).toContainEqual(expect.objectContaining({ id: node, alive: false, tasks: 0 }));
  });

  it("say who they are, for operators", async () => {
    const [id, node] = [uniqueId(), uniqueId("node \0")];
    await accept(one, submit(id, [], { node }));
    await one.heartbeat(node, LIVING, '{"load":1}');
    const known = { id: node, pid: process.pid, alive: true, tasks: 1, report: '{"load":1}' };
    expect(await two.nodes?.()).toContainEqual(expect.objectContaining(known));
  });

  it("claim each delivery once, and no more per lane than one of them may", async () => {
    const deliveries = Array.from({ length: 12 }, (_, at) =>
      registration(`${at}`, { route: "room:claims", address: `${at}` }),
    );
    await accept(one, finished(uniqueId(), 1, { deliveries }));
    const query = { node: "n", route: "room:claims", max: 4, ttlMs: MINUTE, perLane: 3, busy: new Map() };
    const claims: DeliveryClaim[] = [];
    for (let round = 0; round < 4; round++) {
      const found = await Promise.all([one.claimDeliveries(query), two.claimDeliveries(query)]);
      for (const { claims: some } of found) expect(some.length).toBeLessThanOrEqual(3);
      claims.push(...found.flatMap(({ claims: some }) => some));
    }
    expect(claims.map(({ delivery }) => Number(delivery.id)).sort((a, b) => a - b)).toEqual(
      deliveries.map((_, at) => at),
    );
  });

  it("miss no event that is appended while another lets go of its delivery", async () => {
    const route = "room:release";
    const query = { node: "n", route, max: 4, ttlMs: MINUTE, perLane: 9, busy: new Map() };
    const id = uniqueId();
    await accept(one, submit(id, [], { node: "n1", deliveries: [registration("r", { route, address: "{}" })] }));
    for (let number = 1; number <= ROUNDS; number++) {
      const { claims } = await two.claimDeliveries(query);
      const [claimed] = claims;
      if (claimed === undefined) throw new Error(`event ${number} is not due`);
      const release: Write = {
        kind: "delivery-progress",
        id,
        place: claimed.place,
        claim: claimed.claim,
        cursor: number,
        next: { kind: "release" },
      };
      const chunk = append(id, number, [chunkEvent(id, [{ text: "a" }])], { fence: 1 });
      await Promise.all([accept(two, release), accept(one, chunk)]);
    }
  });

  it("let a record be changed by one of two that know what is there", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const key = uniqueId("key");
      const put = (value: string, ifValue: string | null): Write => ({
        kind: "record-put",
        space: "shared",
        key,
        value,
        ifValue,
      });
      const none = [writeOne(one, put("1", null)), writeOne(two, put("2", null))];
      expect(outcomes(await Promise.all(none))).toEqual(["ok", "position"]);
      const known = (await one.record("shared", key)) as string;
      const next = [writeOne(one, put("3", known)), writeOne(two, put("4", known))];
      expect(outcomes(await Promise.all(next))).toEqual(["ok", "position"]);
    }
  });

  it("make all writes of a group but the one that the database does not take", async () => {
    const [before, odd, after] = [uniqueId(), uniqueId(), uniqueId()];
    await expect(one.write([submit(before), submit(odd, [], { turn: 1.5 }), submit(after)])).rejects.toThrow();
    expect(await two.numbers([before, odd, after])).toEqual([1, 0, 1]);
    const chunk = (id: string, turn: number) => append(id, 1, [chunkEvent(id, [{ text: "a" }])], { turn });
    await expect(one.write([chunk(before, 0.5), chunk(after, 1)])).rejects.toThrow();
    expect(await two.numbers([before, after])).toEqual([1, 2]);
  });

  it("write groups of any size", async () => {
    const ids = Array.from({ length: 1_100 }, () => uniqueId());
    await accept(one, ...ids.map((id) => submit(id, [], { deliveries: [registration("one")] })));
    const large = { text: "a".repeat(5 * 2 ** 20) };
    const more = ids.map((id, at) => append(id, 1, [chunkEvent(id, [at < 5 ? large : { text: "a" }])]));
    await accept(two, ...more);
    expect(new Set(await one.numbers(ids))).toEqual(new Set([2]));
  });

  it("leave out of lists and claims what cannot be read", async () => {
    const scope = { ...ALICE, owner: uniqueId("owner") };
    const ids = Array.from({ length: 4 }, () => uniqueId());
    await accept(one, ...ids.map((id) => submit(id, [], scope)));
    const [, notJson, noStatus, noLog] = ids;
    const schema = '"shared"';
    await server.run(`UPDATE ${schema}.task SET status = '{"state"' WHERE id = '${notJson}'`);
    await server.run(`UPDATE ${schema}.task SET status = '5' WHERE id = '${noStatus}'`);
    await server.run(
      `UPDATE ${schema}.segment SET body = '{"task": {}}' WHERE task = (SELECT seq FROM ${schema}.task WHERE id = '${noLog}')`,
    );
    const query = { ...scope, limit: 10, history: 0, artifacts: false };
    expect((await one.list(query)).tasks.map(({ id }) => id).sort()).toEqual([ids[0], noLog].sort());
    const whole = await one.list({ ...query, history: 10, artifacts: true });
    expect(whole.tasks.map(({ id }) => id)).toContain(ids[0]);
    expect(whole.tasks.map(({ id }) => id)).not.toContain(noLog);
    const claimed = await two.claim(uniqueId("node"), [scope.agent], 1_000);
    expect(claimed.map(({ head }) => head.id)).toEqual(expect.arrayContaining([ids[0], noLog]));
    for (const id of ids) await server.run(`DELETE FROM ${schema}.task WHERE id = '${id}'`);
  });

  it("share a schema only within one cluster", async () => {
    const database = await openDatabase(server.url("shared"), { leaseMs: 15_000, log: SILENT_LOG });
    await expect(prepareSchema(database, "serve", "other")).rejects.toMatchObject({ code: "in-use" });
    await prepareSchema(database, "serve", "default");
    await database.close();
  });
});
