import { describe, expect, it } from "vitest";
import { fold } from "../../model/fold.ts";
import type { Part } from "../../model/message.ts";
import type { Clock } from "../../model/ports.ts";
import type { Scope, TaskStore } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  chunkEvent,
  drain,
  EVERYTHING,
  expectCounter,
  finished,
  listQuery,
  MINUTE,
  message,
  StoreClock,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  walk,
  writeAll,
} from "./fixtures.ts";

const KIBI = 1_024;

/** Some of these act on the whole store, so each test has one of its own. */
export function describeUsage(open: () => Promise<TaskStore>): void {
  describe("stored bytes", () => {
    it("are none for an owner who has nothing", async () => {
      const store = await open();
      expect(await store.storedBytes("nobody")).toBe(0);
      await accept(store, finished(uniqueId(), 0, uniqueScope()));
      expect(await store.storedBytes("nobody")).toBe(0);
    });

    it("grow with every write by what it brings, in bytes rather than characters", async () => {
      const store = await open();
      const scope = uniqueScope();
      const id = uniqueId();
      await accept(store, submit(id, [], scope));
      const bytes = () => store.storedBytes(scope.owner);
      await expectCounter(bytes).toBeGreaterThan(id.length);
      const first = await bytes();
      await accept(store, append(id, 1, [chunkEvent(id, [{ text: "x".repeat(KIBI) }])]));
      await expectCounter(bytes).toBeGreaterThanOrEqual(first + KIBI);
      const second = await bytes();
      expect(second - first).toBeLessThan(2 * KIBI);
      await accept(store, append(id, 2, [chunkEvent(id, [{ text: "\u00e9".repeat(KIBI) }])]));
      await expectCounter(bytes).toBeGreaterThanOrEqual(second + 2 * KIBI);
    });

    it("are the same whether they are asked for after each write or once at the end", async () => {
      const scope = uniqueScope();
      const ids = [uniqueId(), uniqueId()];
      const stores: TaskStore[] = [];
      for (const often of [true, false]) {
        const store = await open();
        for (const id of ids) {
          await accept(store, submit(id, [], scope));
          if (often) await store.storedBytes(scope.owner);
          await accept(store, append(id, 1, [chunkEvent(id, [{ text: "more" }])]));
        }
        stores.push(store);
      }
      const sizes = () => Promise.all(stores.map((store) => store.storedBytes(scope.owner)));
      await expectCounter(sizes).toSatisfy(([one, other]: number[]) => one === other && other !== 0);
    });

    it("are those of all agents and tenants of the owner, and of nobody else", async () => {
      const store = await open();
      const one = uniqueScope();
      const other: Scope = { ...one, agent: "another", tenant: "elsewhere" };
      const stranger: Scope = { ...one, owner: `${one.owner} not` };
      await accept(store, finished(uniqueId(), 0, one));
      await expectCounter(() => store.storedBytes(one.owner)).toBeGreaterThan(0);
      const single = await store.storedBytes(one.owner);
      await accept(store, finished(uniqueId(), 0, other));
      await expectCounter(() => store.storedBytes(one.owner)).toBeGreaterThan(single);
      const both = await store.storedBytes(one.owner);
      await accept(store, finished(uniqueId(), 0, stranger));
      await expectCounter(() => store.storedBytes(stranger.owner)).toBeGreaterThan(0);
      expect(await store.storedBytes(one.owner)).toBe(both);
    });

    it("do not count what was refused", async () => {
      const store = await open();
      const scope = uniqueScope();
      const id = uniqueId();
      await accept(store, submit(id, [], scope));
      await expectCounter(() => store.storedBytes(scope.owner)).toBeGreaterThan(0);
      const before = await store.storedBytes(scope.owner);
      const [again, late] = await writeAll(store, [
        submit(id, [], scope),
        append(id, 7, [chunkEvent(id, [{ text: "late" }])]),
      ]);
      expect([again?.ok, late?.ok]).toEqual([false, false]);
      expect(await store.storedBytes(scope.owner)).toBe(before);
    });

    it("shrink when a log of many chunks is compacted, and are gone with the tasks", async () => {
      const store = await open();
      const scope = uniqueScope();
      const [chunky, plain] = [uniqueId(), uniqueId()];
      const chunks = Array.from({ length: 50 }, () => chunkEvent(chunky, [{ text: "x" }]));
      const long = submit(chunky, [...chunks, statusEvent(chunky, status(COMPLETED, 1))], scope);
      await accept(store, long, finished(plain, 1, scope));
      const bytes = () => store.storedBytes(scope.owner);
      await expectCounter(bytes).toBeGreaterThan(0);
      const whole = await bytes();
      expect(await store.compact(0, 10)).toBe(2);
      await expectCounter(bytes).toBeLessThan(whole / 2);
      expect(await bytes()).toBeGreaterThan(0);
      expect(await store.prune(0, 10)).toBe(2);
      await expectCounter(bytes).toBe(0);
    });

    it("are given back by a task that is taken back", async () => {
      const store = await open();
      const scope = uniqueScope();
      const id = uniqueId();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      await accept(store, submit(id, [], { ...scope, node: "node", idempotency }));
      await expectCounter(() => store.storedBytes(scope.owner)).toBeGreaterThan(0);
      await store.write([{ kind: "discard", id, fence: 1, reply: message("hi", "ROLE_AGENT") }]);
      await expectCounter(() => store.storedBytes(scope.owner)).toBe(0);
    });
  });
}

/** These act on the whole store, so each test has one of its own. */
export function describeRetention(open: (clock?: Clock) => Promise<TaskStore>): void {
  describe("compact", () => {
    it("leaves one snapshot in place of the log, with the same content", async () => {
      const store = await open();
      const id = uniqueId();
      const chunks = Array.from({ length: 40 }, (_, index) => chunkEvent(id, [{ text: `${index} ` }]));
      const first = submit(id, [statusEvent(id, status(WORKING, 1, "hm")), ...chunks.slice(0, 20)]);
      const second = append(id, 22, [...chunks.slice(20), statusEvent(id, status(COMPLETED, 2, "done"))]);
      await accept(store, first);
      await accept(store, second);
      const before = await store.snapshot(id, EVERYTHING);
      expect(before?.task).toEqual(fold([...first.entries, ...second.entries]).toTask());
      expect(before?.task.artifacts?.[0]?.parts).toEqual([
        { text: Array.from({ length: 40 }, (_, n) => `${n} `).join("") },
      ]);
      const head = await store.head(id);

      expect(await store.compact(0, 10)).toBe(1);
      expect(await store.compact(0, 10)).toBe(0);

      expect(await store.head(id)).toEqual({ ...head, floor: 43, bytes: expect.any(Number) });
      expect(await store.snapshot(id, EVERYTHING)).toEqual(before);
      expect(await store.snapshot(id, { ...EVERYTHING, at: 7 })).toEqual(before);
      expect(await store.snapshot(id, { ...EVERYTHING, at: 43 })).toEqual(before);
      const { artifacts: _, history: __, ...bare } = before?.task ?? {};
      expect((await store.snapshot(id, { history: 0, artifacts: false }))?.task).toEqual(bare);
      expect(await store.numbers([id])).toEqual([43]);
      const reads = await store.read(
        [
          { id, after: 0 },
          { id, after: 42 },
          { id, after: 43 },
        ],
        10,
      );
      expect(reads).toEqual([
        { kind: "compacted", floor: 43 },
        { kind: "compacted", floor: 43 },
        { kind: "entries", entries: [] },
      ]);
    });

    it("keeps the order and number of messages, whatever part of them is asked for", async () => {
      const store = await open();
      const id = uniqueId();
      const history = Array.from({ length: 150 }, (_, index) => message(`${index}`));
      const write = finished(id, 1);
      const task = { id, contextId: write.contextId, status: status(WORKING), history, metadata: { a: 1 } };
      const { entries } = append(id, 0, [{ task }, statusEvent(id, status(COMPLETED, 1))]);
      await accept(store, { ...write, entries });
      await store.compact(0, 10);
      for (const count of [0, 1, 2, 63, 64, 65, 128, 149, 150, 151, Number.POSITIVE_INFINITY]) {
        const snapshot = await store.snapshot(id, { history: count, artifacts: false });
        expect(snapshot?.task.history ?? []).toEqual(count === 0 ? [] : history.slice(-count));
        expect(snapshot?.task.metadata).toEqual({ a: 1 });
      }
    });

    it("leaves alone what has not ended or not long ago, and does at most what is asked", async () => {
      const clock = new StoreClock();
      const store = await open(clock);
      const [old, older, recent, running] = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
      await accept(store, finished(older), submit(running));
      clock.advance(MINUTE);
      await accept(store, finished(old));
      clock.advance(MINUTE);
      await accept(store, finished(recent));
      expect(await store.compact(MINUTE, 1)).toBe(1);
      expect(await store.compact(MINUTE, 1)).toBe(1);
      expect(await store.compact(MINUTE, 1)).toBe(0);
      const floors = await Promise.all([older, old, recent, running].map(async (id) => (await store.head(id))?.floor));
      expect(floors).toEqual([2, 2, 0, 0]);
      clock.advance(MINUTE);
      expect(await store.compact(MINUTE, 9)).toBe(1);
    });

    it("does not change what a list shows", async () => {
      const store = await open();
      const scope = uniqueScope();
      const parts: Part[] = [{ text: "x" }, { data: [1] }];
      for (let index = 0; index < 5; index++) {
        const id = uniqueId();
        await accept(
          store,
          submit(id, [chunkEvent(id, parts), statusEvent(id, status(COMPLETED, index, "done"))], scope),
        );
      }
      const query = listQuery(scope, EVERYTHING);
      const { tasks } = await store.list(query);
      expect(await store.compact(0, 100)).toBe(5);
      expect((await store.list(query)).tasks).toEqual(tasks);
    });
  });

  describe("prune", () => {
    it("deletes ended tasks with all they had", async () => {
      const clock = new StoreClock();
      const store = await open(clock);
      const scope = uniqueScope();
      const [old, compacted, recent, running] = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
      await accept(store, submit(old, [], { ...scope, node: "n" }));
      await accept(store, { kind: "remember", id: old, fence: 1, key: "k", value: "1" });
      await accept(store, finished(compacted, 0, scope));
      await store.compact(0, 10);
      await accept(store, append(old, 1, [statusEvent(old, status(COMPLETED, 1))]));
      clock.advance(MINUTE);
      await accept(store, finished(recent, 5, scope), submit(running, [], scope));
      expect(await store.prune(MINUTE, 10)).toBe(2);
      expect(await store.prune(MINUTE, 10)).toBe(0);
      expect(await walk(store, listQuery(scope))).toEqual([recent, running]);
      await expectCounter(async () => (await store.list(listQuery(scope))).total).toBe(2);
      expect(await store.head(old)).toBeUndefined();
      expect(await store.memory(old)).toEqual(new Map());
      expect(await store.read([{ id: compacted, after: 0 }], 1)).toEqual([{ kind: "missing" }]);
      await accept(store, finished(old, 9, scope));
      expect(await store.memory(old)).toEqual(new Map());
      await expectCounter(() => store.stats()).toMatchObject({ tasks: 3, events: 5 });
    });

    it("does at most what is asked", async () => {
      const store = await open();
      await accept(store, ...Array.from({ length: 7 }, (_, index) => finished(uniqueId(), index, uniqueScope())));
      expect(await store.prune(0, 3)).toBe(3);
      expect(await drain(() => store.prune(0, 3))).toBe(4);
      await expectCounter(() => store.stats()).toMatchObject({ tasks: 0 });
    });

    it("keeps a key for its time, though its task is gone", async () => {
      const store = await open();
      const scope = uniqueScope();
      const [one, two] = [uniqueId(), uniqueId()];
      const key = (name: string, ttlMs: number) => ({ idempotency: { key: name, fingerprint: "f", ttlMs } });
      await accept(store, finished(one, 1, { ...scope, ...key("kept", MINUTE) }));
      await accept(store, finished(two, 1, { ...scope, ...key("past", -1) }));
      expect(await store.prune(0, 10)).toBe(2);
      expect(await store.findIdempotencyRecord({ ...scope, key: "kept" })).toMatchObject({ taskId: one });
      expect(await store.findIdempotencyRecord({ ...scope, key: "past" })).toBeUndefined();
    });
  });

  describe("stats", () => {
    it("counts tasks by state and events", async () => {
      const store = await open();
      const [one, two, three] = [uniqueId(), uniqueId(), uniqueId()];
      await expectCounter(() => store.stats()).toMatchObject({ tasks: 0, byState: {}, events: 0 });
      await accept(store, finished(one, 1), finished(two, 1, uniqueScope()), submit(three, [], { node: "n" }));
      await accept(store, append(three, 1, [statusEvent(three, status(WORKING, 1)), chunkEvent(three, [])]));
      await expectCounter(() => store.stats()).toMatchObject({ tasks: 3, events: 7 });
      expect((await store.stats()).byState).toEqual({ [COMPLETED]: 2, [WORKING]: 1 });
      await accept(store, { kind: "discard", id: three, fence: 1, reply: message("plain") });
      await expectCounter(() => store.stats()).toMatchObject({ tasks: 2, events: 4 });
    });
  });
}
