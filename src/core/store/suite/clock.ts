import { describe, expect, it } from "vitest";
import type { Clock } from "../../model/ports.ts";
import { LIST_VIEW_MS, type ListPosition, type TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  listQuery,
  MINUTE,
  registration,
  StoreClock,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  writeOne,
} from "./fixtures.ts";

/** Nodes date what they write by their own clocks, and the store trusts only its own. */
export function describeClock(open: (clock?: Clock) => Promise<TaskStore>): void {
  describe.each([-10, 10])("a store whose clock is %i minutes away from those of its nodes", (minutes) => {
    const start = async () => {
      const clock = new StoreClock(minutes * MINUTE);
      return { clock, store: await open(clock), id: uniqueId() };
    };
    const now = (state: typeof WORKING | typeof COMPLETED) => ({ state, timestamp: new Date().toISOString() });

    it("lets a lease be taken over when the node has been silent for its time, and not before", async () => {
      const { clock, store, id } = await start();
      await accept(store, submit(id, [statusEvent(id, now(WORKING))], { node: "n1" }));
      await store.heartbeat("n1", MINUTE);
      clock.advance(MINUTE);
      const take = append(id, 2, [], { lease: { take: "n2" } });
      expect(await writeOne(store, take)).toMatchObject({ refusal: "fenced" });
      expect(await store.claim("n2", [ALICE.agent], 10)).toEqual([]);
      clock.advance(1);
      expect(await store.claim("n2", [ALICE.agent], 10)).toMatchObject([{ fence: 2, head: { id, node: "n2" } }]);
    });

    it("recognises a key for its time", async () => {
      const { clock, store, id } = await start();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      await accept(store, submit(id, [], { idempotency }));
      clock.advance(MINUTE - 1);
      expect(await writeOne(store, submit(uniqueId(), [], { idempotency }))).toMatchObject({ refusal: "duplicate" });
      clock.advance(1);
      expect(await store.findIdempotencyRecord({ ...ALICE, key: "key" })).toBeUndefined();
      await accept(store, submit(uniqueId(), [], { idempotency }));
    });

    it("keeps a record for its time", async () => {
      const { clock, store, id } = await start();
      await accept(store, { kind: "record-put", space: "s", key: id, value: "1", ttlMs: MINUTE });
      clock.advance(MINUTE - 1);
      await store.prune(0, 10);
      expect(await store.record("s", id)).toBe("1");
      clock.advance(1);
      expect(await store.record("s", id)).toBeUndefined();
    });

    it("lets a delivery be claimed when its task can no longer be taken back, and again when the claim has ended", async () => {
      const { clock, store, id } = await start();
      const claim = {
        node: "n1",
        route: "webhook",
        max: 1,
        ttlMs: MINUTE,
        perLane: 1,
        busy: new Map<string, number>(),
      };
      await accept(store, submit(id, [], { deliveries: [registration("one")], notifyAfterMs: MINUTE }));
      for (const node of ["n1", "n2"]) {
        clock.advance(MINUTE - 1);
        expect(await store.claimDeliveries({ ...claim, node })).toEqual({ claims: [], nextInMs: 1 });
        clock.advance(1);
        expect((await store.claimDeliveries({ ...claim, node })).claims).toHaveLength(1);
      }
    });

    it("keeps a task for its time after it has ended, whatever the timestamp of its status", async () => {
      const { clock, store, id } = await start();
      await accept(store, submit(id, [], { node: "n1" }));
      clock.advance(MINUTE);
      await accept(store, append(id, 1, [statusEvent(id, now(COMPLETED))], { fence: 1 }));
      clock.advance(MINUTE - 1);
      expect(await store.compact(MINUTE, 10)).toBe(0);
      expect(await store.prune(MINUTE, 10)).toBe(0);
      clock.advance(1);
      expect(await store.compact(MINUTE, 10)).toBe(1);
      expect(await store.prune(Number.POSITIVE_INFINITY, 10)).toBe(0);
      expect(await store.prune(MINUTE, 10)).toBe(1);
      expect(await store.head(id)).toBeUndefined();
    });

    it("keeps the positions that a list began with for their time, and later shows no task twice", async () => {
      const { clock, store } = await start();
      const ids = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
      await accept(store, ...ids.map((id) => submit(id)));
      const shown: string[] = [];
      const page = async (after?: ListPosition) => {
        const { tasks, next } = await store.list(listQuery(ALICE, { limit: 1, ...(after && { after }) }));
        shown.push(...tasks.map(({ id }) => id));
        return next;
      };
      const first = await page();
      for (const id of ids) await accept(store, append(id, 1, [statusEvent(id, now(WORKING))]));
      clock.advance(LIST_VIEW_MS);
      await store.prune(Number.POSITIVE_INFINITY, 10);
      const second = await page(first);
      expect(new Set(shown).size).toBe(2);
      clock.advance(1);
      await store.prune(Number.POSITIVE_INFINITY, 10);
      for (let next = second; next !== undefined; ) next = await page(next);
      expect(new Set(shown).size).toBe(shown.length);
    });
  });
}
