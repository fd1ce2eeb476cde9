import { describe, expect, it } from "vitest";
import type { DeliveryDelete, DeliveryGroup, DeliveryPut, Scope, TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  chunkEvent,
  finished,
  MINUTE,
  message,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  writeOne,
} from "./fixtures.ts";

const MISSING = { ok: false, refusal: "missing" };

function put(id: string, deliveryId: string, more: Partial<DeliveryPut> = {}): DeliveryPut {
  return { kind: "delivery-put", ...ALICE, id, delivery: registration(deliveryId), ...more };
}

function remove(id: string, deliveryId: string, group: DeliveryGroup = "webhooks", scope = ALICE): DeliveryDelete {
  return { kind: "delivery-delete", ...scope, id, group, deliveryId };
}

async function find(store: TaskStore, id: string, deliveryId: string) {
  return (await store.delivery(id, "webhooks", deliveryId))?.delivery;
}

async function idsOf(store: TaskStore, id: string, limit = 100): Promise<readonly string[] | undefined> {
  return (await store.deliveries(id, { group: "webhooks", limit }))?.deliveries.map((delivery) => delivery.id);
}

/** `open`: for those that act on the whole store. */
export function describeDeliveries(store: () => TaskStore, open: () => Promise<TaskStore>): void {
  describe("deliveries", () => {
    it("are kept with where the log stood, and say whose they are", async () => {
      const id = uniqueId();
      const scope = uniqueScope();
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1))], scope));
      const delivery = registration("one", {
        address: "address \0 \ud800 \u0001",
        secret: "secret \0 \ud800 \u0001",
        dialect: "another",
      });
      expect(await writeOne(store(), put(id, "one", { ...scope, delivery }))).toEqual({
        ok: true,
        number: 2,
        fence: 0,
      });
      const stored = { ...delivery, taskId: id, createdAt: expect.any(Number), cursor: 2 };
      const found = await store().delivery(id, "webhooks", "one");
      expect(found?.delivery).toEqual(stored);
      expect(found?.scope).toMatchObject(scope);
      const page = await store().deliveries(id, { group: "webhooks", limit: 10 });
      expect(page?.deliveries).toEqual([stored]);
      expect(page?.next).toBeUndefined();
      expect(page?.scope).toMatchObject(scope);
    });

    it("have any id", async () => {
      const id = uniqueId("\ud800 task");
      const ids = ["\0", "\ud800", "", "\u0001", "ä"];
      await accept(store(), submit(id), ...ids.map((deliveryId) => put(id, deliveryId)));
      expect(await idsOf(store(), id)).toEqual(ids);
      for (const deliveryId of ids) {
        expect(await find(store(), id, deliveryId)).toMatchObject({ id: deliveryId, taskId: id });
      }
    });

    it("are replaced by one of the same id, which stays in their place", async () => {
      const id = uniqueId();
      const first = registration("one", { secret: "{}", wants: "outcome" });
      await accept(store(), submit(id), put(id, "one", { delivery: first }), put(id, "two"));
      const before = await find(store(), id, "one");
      await accept(store(), append(id, 1, [chunkEvent(id, [{ text: "a" }])]));
      const second = registration("one", { address: "http://other.example/", dialect: "another" });
      await accept(store(), put(id, "one", { delivery: second }));
      expect(await find(store(), id, "one")).toEqual({
        ...second,
        taskId: id,
        createdAt: before?.createdAt,
        cursor: 1,
      });
      expect(await idsOf(store(), id)).toEqual(["one", "two"]);
    });

    it("are deleted alone, once or more often", async () => {
      const id = uniqueId();
      await accept(store(), submit(id), put(id, "one"), put(id, "two"));
      const gone = remove(id, "one");
      await accept(store(), gone, gone);
      await accept(store(), gone);
      expect(await find(store(), id, "one")).toBeUndefined();
      expect(await idsOf(store(), id)).toEqual(["two"]);
      await accept(store(), append(id, 1, [chunkEvent(id, [{ text: "a" }])]), put(id, "one"));
      expect((await find(store(), id, "one"))?.cursor).toBe(2);
      expect(await idsOf(store(), id)).toEqual(["two", "one"]);
    });

    it("belong to a task of the scope, and nobody else can tell", async () => {
      const [id, unknown] = [uniqueId(), uniqueId()];
      await accept(store(), submit(id), put(id, "one"));
      const strangers: Scope[] = [
        { ...ALICE, owner: "bob" },
        { ...ALICE, tenant: "other" },
        { ...ALICE, agent: "other" },
      ];
      for (const scope of strangers) {
        expect(await writeOne(store(), put(id, "two", scope))).toEqual(MISSING);
        expect(await writeOne(store(), remove(id, "one", "webhooks", scope))).toEqual(MISSING);
      }
      expect(await writeOne(store(), put(unknown, "one"))).toEqual(MISSING);
      expect(await writeOne(store(), remove(unknown, "one"))).toEqual(MISSING);
      expect(await idsOf(store(), id)).toEqual(["one"]);
      expect(await find(store(), unknown, "one")).toBeUndefined();
      expect(await store().deliveries(unknown, { group: "webhooks", limit: 1 })).toBeUndefined();
    });

    it("of several tasks do not meet", async () => {
      const [one, two] = [uniqueId(), uniqueId()];
      await accept(store(), submit(one), submit(two), put(one, "a"), put(two, "b"), put(one, "c"), put(two, "a"));
      expect(await idsOf(store(), one)).toEqual(["a", "c"]);
      expect(await idsOf(store(), two)).toEqual(["b", "a"]);
      await accept(store(), remove(two, "a"));
      expect(await idsOf(store(), one)).toEqual(["a", "c"]);
    });

    it("of the server's own routes never meet the webhooks of callers", async () => {
      const id = uniqueId();
      const own = registration("one", { route: "room:a", address: "{}" });
      await accept(store(), submit(id), put(id, "one"), put(id, "one", { delivery: own }));
      expect(await idsOf(store(), id)).toEqual(["one"]);
      expect(await find(store(), id, "one")).toMatchObject(registration("one"));
      expect((await store().delivery(id, "replies", "one"))?.delivery).toMatchObject(own);
      await accept(store(), remove(id, "one"));
      expect(await idsOf(store(), id)).toEqual([]);
      expect((await store().deliveries(id, { group: "replies", limit: 1 }))?.deliveries).toMatchObject([own]);
      await accept(store(), remove(id, "one", "replies"));
      expect(await store().delivery(id, "replies", "one")).toBeUndefined();
    });

    it("may be added to a task that has ended, whoever held it last", async () => {
      const id = uniqueId();
      await accept(store(), finished(id), put(id, "one"));
      expect((await find(store(), id, "one"))?.cursor).toBe(2);
    });
  });

  describe("pages of deliveries", () => {
    it("follow each other in the order of creation", async () => {
      const id = uniqueId();
      const all = Array.from({ length: 7 }, (_, index) => `config ${(index * 3) % 7}`);
      await accept(store(), submit(id), ...all.map((deliveryId) => put(id, deliveryId)));
      const met: string[] = [];
      let after: number | undefined;
      do {
        const page = await store().deliveries(id, {
          group: "webhooks",
          limit: 3,
          ...(after === undefined ? undefined : { after }),
        });
        met.push(...(page?.deliveries ?? []).map((delivery) => delivery.id));
        after = page?.next;
      } while (after !== undefined);
      expect(met).toEqual(all);
      expect((await store().deliveries(id, { group: "webhooks", limit: 7 }))?.next).toBeUndefined();
    });

    it("miss nothing that stays or comes, whatever is deleted meanwhile", async () => {
      const id = uniqueId();
      await accept(store(), submit(id), put(id, "a"), put(id, "b"), put(id, "c"));
      const page = await store().deliveries(id, { group: "webhooks", limit: 2 });
      expect(page?.deliveries.map((delivery) => delivery.id)).toEqual(["a", "b"]);
      const deleted = ["a", "b", "c"].map((deliveryId) => remove(id, deliveryId));
      await accept(store(), ...deleted, put(id, "d"), put(id, "b"));
      const rest = await store().deliveries(id, { group: "webhooks", limit: 10, after: page?.next ?? Number.NaN });
      expect(rest?.deliveries.map((delivery) => delivery.id)).toEqual(["d", "b"]);
    });
  });

  describe("deliveries with other writes", () => {
    it("come with a submit, from before its first event", async () => {
      const id = uniqueId();
      await accept(store(), finished(id, 1, { deliveries: [registration("one"), registration("two")] }));
      expect((await store().deliveries(id, { group: "webhooks", limit: 9 }))?.deliveries).toMatchObject([
        { ...registration("one"), cursor: 0 },
        { ...registration("two"), cursor: 0 },
      ]);
    });

    it("do not come with a submit that is refused", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const scope = uniqueScope();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      const deliveries = [registration("one")];
      await accept(store(), submit(id, [], { ...scope, idempotency }));
      expect(await writeOne(store(), submit(id, [], { ...scope, deliveries }))).toMatchObject({ refusal: "exists" });
      const again = submit(other, [], { ...scope, idempotency, deliveries });
      expect(await writeOne(store(), again)).toMatchObject({ refusal: "duplicate" });
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), other)).toBeUndefined();
    });

    it("come with an append, from before its entries", async () => {
      const id = uniqueId();
      await accept(store(), submit(id, [], { deliveries: [registration("one")] }));
      const events = [statusEvent(id, status(WORKING, 1)), chunkEvent(id, [{ text: "a" }])];
      const deliveries = [registration("two"), registration("one", { secret: "{}" })];
      await accept(store(), append(id, 1, events, { deliveries }));
      expect((await store().deliveries(id, { group: "webhooks", limit: 9 }))?.deliveries).toMatchObject([
        { ...registration("one"), secret: "{}", cursor: 0 },
        { ...registration("two"), cursor: 1 },
      ]);
    });

    it("do not come with an append that is refused", async () => {
      const [id, ended] = [uniqueId(), uniqueId()];
      await accept(store(), submit(id), finished(ended));
      const deliveries = [registration("one")];
      expect(await writeOne(store(), append(id, 2, [], { deliveries }))).toMatchObject({ refusal: "position" });
      expect(await writeOne(store(), append(id, 1, [], { fence: 4, deliveries }))).toMatchObject({ refusal: "fenced" });
      expect(await writeOne(store(), append(ended, 2, [], { deliveries }))).toMatchObject({ refusal: "terminal" });
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), ended)).toEqual([]);
    });

    it("go with a task that is taken back", async () => {
      const [id, neighbour] = [uniqueId(), uniqueId()];
      const deliveries = [registration("one")];
      await accept(store(), submit(id, [], { node: "n", deliveries }), submit(neighbour, [], { deliveries }));
      await accept(store(), { kind: "discard", id, fence: 1, reply: message("plain") });
      expect(await find(store(), id, "one")).toBeUndefined();
      expect(await idsOf(store(), id)).toBeUndefined();
      await accept(store(), submit(id));
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), neighbour)).toEqual(["one"]);
    });

    it("outlive the log of an ended task, and go when it is pruned", async () => {
      const own = await open();
      const [id, running] = [uniqueId(), uniqueId()];
      const deliveries = [registration("one")];
      await accept(own, finished(id, 1, { deliveries }), submit(running, [], { deliveries }));
      expect(await own.compact(0, 10)).toBe(1);
      expect(await idsOf(own, id)).toEqual(["one"]);
      expect(await own.prune(0, 10)).toBe(1);
      expect(await idsOf(own, id)).toBeUndefined();
      await accept(own, submit(id));
      expect(await idsOf(own, id)).toEqual([]);
      expect(await idsOf(own, running)).toEqual(["one"]);
    });
  });
}
