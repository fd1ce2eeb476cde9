import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Clock } from "../model/ports.ts";
import type { ListPage, TaskStore } from "./contract.ts";
import { describeClock } from "./suite/clock.ts";
import { describeDeliveries } from "./suite/deliveries.ts";
import { describeDeliveryClaims } from "./suite/delivery-claims.ts";
import { describeDeliveryRoutes } from "./suite/delivery-routes.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  EVERYTHING,
  expectCounter,
  finished,
  listQuery,
  MINUTE,
  message,
  readAll,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  walk,
} from "./suite/fixtures.ts";
import { describeLeases } from "./suite/leases.ts";
import { describeLists, describeWalks } from "./suite/lists.ts";
import { describeModel } from "./suite/model.ts";
import { describeReads } from "./suite/reads.ts";
import { describeRecords } from "./suite/records.ts";
import { describeRetention, describeUsage } from "./suite/retention.ts";
import { describeWrites } from "./suite/writes.ts";

const HOUR = 3_600_000;

interface StoreUnderTest {
  /** An empty store that no one else uses, with this clock in place of its own. */
  open(clock?: Clock): Promise<TaskStore>;
  /** The same content after the store was closed; absent if nothing survives that. */
  reopen?: (store: TaskStore) => Promise<TaskStore>;
}

/** What `contract.ts` means. Every store must pass; nothing here assumes that it lives in this process. */
export function describeStore(name: string, { open, reopen }: StoreUnderTest): void {
  describe(name, () => {
    const opened: TaskStore[] = [];
    let shared: TaskStore;

    async function openAnother(clock?: Clock): Promise<TaskStore> {
      const store = await open(clock);
      opened.push(store);
      return store;
    }

    beforeAll(async () => {
      shared = await openAnother();
    });

    afterAll(async () => {
      await Promise.all(opened.map((store) => store.close()));
    });

    const store = () => shared;
    describeWrites(store);
    describeLeases(store);
    describeReads(store);
    describeLists(store);
    describeWalks(store);
    describeDeliveries(store, openAnother);
    describeDeliveryClaims(openAnother);
    describeDeliveryRoutes(openAnother);
    describeRecords(openAnother);
    describeModel(store);
    describeRetention(openAnother);
    describeUsage(openAnother);
    describeClock(openAnother);
    if (reopen !== undefined) describeReopening(openAnother, reopen);
  });
}

/** What a store calls the present may differ each time it is asked. */
function withoutView({ next, ...page }: ListPage) {
  return { ...page, next: { ...next, view: "" } };
}

function describeReopening(open: () => Promise<TaskStore>, reopen: (store: TaskStore) => Promise<TaskStore>): void {
  describe("reopened", () => {
    it("has everything it had", async () => {
      const scope = uniqueScope();
      const [running, ended, compacted] = [uniqueId(), uniqueId(), uniqueId()];
      const before = await open();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      await accept(before, finished(compacted, 0, scope));
      await before.compact(0, 10);
      await accept(before, submit(running, [], { ...scope, node: "n1", idempotency }), finished(ended, 1, scope));
      await accept(before, append(running, 1, [statusEvent(running, status(WORKING, 2))], { fence: 1 }));
      await accept(before, append(running, 2, [chunkEvent(running, [{ text: "a" }])], { fence: 1 }));
      await accept(before, { kind: "remember", id: running, fence: 1, key: "k", value: "1" });
      const put = { kind: "delivery-put" as const, ...scope, id: running };
      await accept(before, { ...put, delivery: registration("one") }, { ...put, delivery: registration("two") });
      await accept(before, { kind: "record-put", space: "logins", key: "one", value: "1" });
      const view = async (store: TaskStore) => ({
        // What only the log has of an open task may be counted later.
        head: { ...(await store.head(running)), bytes: 0 },
        snapshots: await Promise.all([running, ended, compacted].map((id) => store.snapshot(id, EVERYTHING))),
        log: await readAll(store, running),
        memory: await store.memory(running),
        deliveries: await store.deliveries(running, { group: "webhooks", limit: 1 }),
        delivery: await store.delivery(running, "webhooks", "two"),
        records: await store.records("logins", { limit: 10 }),
        page: withoutView(await store.list(listQuery(scope, { limit: 2 }))),
        key: await store.findIdempotencyRecord({ ...scope, key: "key" }),
        stats: { ...(await store.stats()), bytes: 0 },
        storedBytes: await store.storedBytes(scope.owner),
      });
      await expectCounter(() => before.stats()).toMatchObject({ tasks: 3, events: 7 });
      const known = await view(before);
      const after = await reopen(before);
      await expectCounter(() => view(after)).toEqual(known);
      await accept(after, append(running, 3, [statusEvent(running, status(COMPLETED, 3))]));
      expect(await after.prune(0, 10)).toBe(3);
      await accept(after, submit(running));
      expect((await after.deliveries(running, { group: "webhooks", limit: 10 }))?.deliveries).toEqual([]);
      await after.close();
    });

    it("continues a walk that began before", async () => {
      const scope = uniqueScope();
      const before = await open();
      const [one, two, three] = [uniqueId(), uniqueId(), uniqueId()];
      for (const [index, id] of [one, two, three].entries()) {
        await accept(before, submit(id, [statusEvent(id, status(WORKING, index))], scope));
      }
      const first = await before.list(listQuery(scope, { limit: 1 }));
      expect(first.tasks.map(({ id }) => id)).toEqual([three]);
      await accept(before, append(one, 2, [statusEvent(one, status(WORKING, 10))]));
      const after = await reopen(before);
      await accept(after, append(two, 2, [statusEvent(two, status(WORKING, 11))]), finished(uniqueId(), 0, scope));
      if (first.next === undefined) throw new Error("expected a next page");
      expect(await walk(after, listQuery(scope, { limit: 1, after: first.next }))).toEqual([two, one]);
      await after.close();
    });

    it("has nothing of a task that was taken back", async () => {
      const [taken, fresh] = [uniqueId(), uniqueId()];
      const before = await open();
      await accept(before, submit(taken, [], { node: "n1" }));
      await accept(before, { kind: "remember", id: taken, fence: 1, key: "k", value: "1" });
      await accept(before, { kind: "delivery-put", ...ALICE, id: taken, delivery: registration("one") });
      await accept(before, append(taken, 1, [statusEvent(taken, status(WORKING, 1, "hm"))], { fence: 1 }));
      await accept(before, { kind: "discard", id: taken, fence: 1, reply: message("plain") });
      const after = await reopen(before);
      await accept(after, submit(fresh));
      expect(await after.memory(fresh)).toEqual(new Map());
      expect((await after.deliveries(fresh, { group: "webhooks", limit: 10 }))?.deliveries).toEqual([]);
      expect(await readAll(after, fresh)).toHaveLength(1);
      await accept(after, append(fresh, 1, [statusEvent(fresh, status(WORKING, 2))]));
      await expectCounter(() => after.stats()).toMatchObject({ tasks: 1, events: 2 });
      await after.close();
    });

    it("gives up the claims of nodes that died with the earlier process, at the first beat", async () => {
      const [claimed, held] = [uniqueId(), uniqueId()];
      const before = await open();
      const query = { node: "n1", max: 10, ttlMs: HOUR, perLane: 10, busy: new Map<string, number>() };
      const reply = registration("reply", { route: "room:a", address: "{}", heldBy: { node: "n1", ttlMs: HOUR } });
      await accept(before, finished(claimed, 1, { deliveries: [registration("one")] }));
      await accept(before, submit(held, [], { deliveries: [reply] }));
      const claimFor = async (store: TaskStore, node: string) => {
        const routes = ["webhook", "room:a"];
        const found = await Promise.all(routes.map((route) => store.claimDeliveries({ ...query, node, route })));
        return found.flatMap(({ claims }) => claims.map(({ delivery }) => [delivery.taskId, delivery.cursor]));
      };
      expect(await claimFor(before, "n1")).toEqual([[claimed, 0]]);
      const after = await reopen(before);
      expect(await claimFor(after, "n2")).toEqual([]);
      await after.heartbeat("n2", 60_000);
      expect(await claimFor(after, "n2")).toEqual([
        [claimed, 0],
        [held, 0],
      ]);
      await after.heartbeat("n2", 60_000);
      expect(await claimFor(after, "n3")).toEqual([]);
      await after.close();
    });

    it("gives up the leases of nodes that died with the earlier process, at the first beat", async () => {
      const agent = uniqueId("agent");
      const [running, parked] = [uniqueId(), uniqueId()];
      const before = await open();
      await before.heartbeat("n1", 60_000);
      await accept(before, submit(running, [], { agent, node: "n1" }));
      await accept(
        before,
        submit(parked, [statusEvent(parked, status("TASK_STATE_INPUT_REQUIRED"))], { agent, node: "n1" }),
      );
      const after = await reopen(before);
      const fresh = uniqueId();
      await accept(after, submit(fresh, [], { ...ALICE, agent, node: "n2" }));
      await after.heartbeat("n3", 60_000);
      const claimed = await after.claim("n3", [agent], 10);
      expect(claimed.map(({ head, fence }) => [head.id, fence, head.attempt])).toEqual([[running, 2, 2]]);
      expect(await after.head(parked)).toMatchObject({ node: undefined });
      expect(await after.head(fresh)).toMatchObject({ node: "n2" });
      await after.close();
    });
  });
}
