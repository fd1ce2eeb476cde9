import { describe, expect, it } from "vitest";
import type { Scope, TaskStore } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  chunkEvent,
  EPOCH,
  FAR_FUTURE,
  finished,
  message,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
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
      const first = await store.storedBytes(scope.owner);
      expect(first).toBeGreaterThan(id.length);
      await accept(store, append(id, 1, [chunkEvent(id, [{ text: "x".repeat(KIBI) }])]));
      const second = await store.storedBytes(scope.owner);
      expect(second - first).toBeGreaterThanOrEqual(KIBI);
      expect(second - first).toBeLessThan(2 * KIBI);
      await accept(store, append(id, 2, [chunkEvent(id, [{ text: "\u00e9".repeat(KIBI) }])]));
      const third = await store.storedBytes(scope.owner);
      expect(third - second).toBeGreaterThanOrEqual(2 * KIBI);
      expect(await store.storedBytes(scope.owner)).toBe(third);
    });

    it("are the same whether they are asked for after each write or once at the end", async () => {
      const scope = uniqueScope();
      const ids = [uniqueId(), uniqueId()];
      const sizes: number[] = [];
      for (const often of [true, false]) {
        const store = await open();
        for (const id of ids) {
          await accept(store, submit(id, [], scope));
          if (often) await store.storedBytes(scope.owner);
          await accept(store, append(id, 1, [chunkEvent(id, [{ text: "more" }])]));
        }
        sizes.push(await store.storedBytes(scope.owner));
      }
      expect(sizes[0]).toBe(sizes[1]);
    });

    it("are those of all agents and tenants of the owner, and of nobody else", async () => {
      const store = await open();
      const one = uniqueScope();
      const other: Scope = { ...one, agent: "another", tenant: "elsewhere" };
      const stranger: Scope = { ...one, owner: `${one.owner} not` };
      await accept(store, finished(uniqueId(), 0, one));
      const single = await store.storedBytes(one.owner);
      await accept(store, finished(uniqueId(), 0, other));
      const both = await store.storedBytes(one.owner);
      expect(both).toBeGreaterThan(single);
      await accept(store, finished(uniqueId(), 0, stranger));
      expect(await store.storedBytes(one.owner)).toBe(both);
      expect(await store.storedBytes(stranger.owner)).toBeGreaterThan(0);
    });

    it("do not count what was refused", async () => {
      const store = await open();
      const scope = uniqueScope();
      const id = uniqueId();
      await accept(store, submit(id, [], scope));
      const before = await store.storedBytes(scope.owner);
      const [again, late] = await store.write([
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
      await accept(store, submit(chunky, [...chunks, statusEvent(chunky, status(COMPLETED, 1))], scope));
      await accept(store, finished(plain, 1, scope));
      const whole = await store.storedBytes(scope.owner);
      expect(await store.compact(EPOCH + 2, 10)).toBe(2);
      const compacted = await store.storedBytes(scope.owner);
      expect(compacted).toBeLessThan(whole / 2);
      expect(compacted).toBeGreaterThan(0);
      expect(await store.prune(EPOCH + 2, 10)).toBe(2);
      expect(await store.storedBytes(scope.owner)).toBe(0);
    });

    it("are given back by a task that is taken back", async () => {
      const store = await open();
      const scope = uniqueScope();
      const id = uniqueId();
      const idempotency = { key: "key", fingerprint: "print", expiresAt: FAR_FUTURE };
      await accept(store, submit(id, [], { ...scope, node: "node", idempotency }));
      expect(await store.storedBytes(scope.owner)).toBeGreaterThan(0);
      await store.write([{ kind: "discard", id, fence: 1, reply: message("hi", "ROLE_AGENT") }]);
      expect(await store.storedBytes(scope.owner)).toBe(0);
    });
  });
}
