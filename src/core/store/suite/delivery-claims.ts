import { describe, expect, it } from "vitest";
import type { DeliveryClaim, DeliveryClaimQuery, DeliveryProgress, TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  chunkEvent,
  finished,
  message,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  writeOne,
} from "./fixtures.ts";

export const HOUR = 3_600_000;

export function query(more: Partial<DeliveryClaimQuery> = {}): DeliveryClaimQuery {
  return { node: "n", route: "webhook", max: 10, ttlMs: HOUR, perLane: 10, busy: new Map(), ...more };
}

export async function claim(
  store: TaskStore,
  more: Partial<DeliveryClaimQuery> = {},
): Promise<readonly DeliveryClaim[]> {
  return (await store.claimDeliveries(query(more))).claims;
}

async function claimOne(store: TaskStore): Promise<DeliveryClaim> {
  const [claimed, ...others] = await claim(store);
  if (claimed === undefined || others.length > 0) throw new Error(`expected one claim, got ${others.length}`);
  return claimed;
}

export const idsIn = (claims: readonly DeliveryClaim[]) => claims.map(({ delivery }) => delivery.id);

export function progress(
  { delivery, place, claim }: DeliveryClaim,
  cursor: number,
  next: DeliveryProgress["next"],
): DeliveryProgress {
  return { kind: "delivery-progress", id: delivery.taskId, place, claim, cursor, next };
}

export function moreOf(id: string, after: number) {
  return append(id, after, [chunkEvent(id, [{ text: "a" }])]);
}

export const RELEASE = { kind: "release" } as const;

/** Each opens a store of its own: what is due is due to whoever asks. */
export function describeDeliveryClaims(open: () => Promise<TaskStore>): void {
  describe("what is left to deliver", () => {
    it("is claimed once, with where its delivery stands", async () => {
      const store = await open();
      const id = uniqueId("\ud800 task");
      await accept(store, finished(id, 1, { deliveries: [registration("one", { secret: "{}" })] }));
      const claimed = await claimOne(store);
      expect(claimed).toMatchObject({ attempts: 0, lane: "hook.example", scope: ALICE });
      expect(claimed.delivery).toMatchObject({ ...registration("one", { secret: "{}" }), taskId: id, cursor: 0 });
      expect(await claim(store)).toEqual([]);
      const released = await writeOne(store, progress(claimed, 2, RELEASE));
      expect(released).toEqual({ ok: true, number: 2, fence: 0 });
      expect(await claim(store)).toEqual([]);
      expect((await store.delivery(id, "webhooks", "one"))?.delivery.cursor).toBe(2);
      expect(await store.pendingDeliveries({ limit: 10 })).toEqual([]);
    });

    it("begins after the event that was the newest when it was registered", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id), { kind: "delivery-put", ...ALICE, id, delivery: registration("one") });
      expect(await claim(store)).toEqual([]);
      expect(await writeOne(store, moreOf(id, 1))).toMatchObject({ due: ["webhook"] });
      expect(await writeOne(store, moreOf(id, 2))).not.toHaveProperty("due");
      expect((await claimOne(store)).delivery.cursor).toBe(1);
      expect(await writeOne(store, moreOf(id, 3))).not.toHaveProperty("due");
    });

    it("is nothing where nobody registered", async () => {
      const store = await open();
      const id = uniqueId();
      expect(await writeOne(store, submit(id))).not.toHaveProperty("due");
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await store.claimDeliveries(query())).toEqual({ claims: [] });
    });

    it("of a task that may be taken back waits, until a second event or for as long as was asked", async () => {
      const store = await open();
      const [one, two] = [uniqueId(), uniqueId()];
      const deliveries = [registration("one")];
      expect(await writeOne(store, submit(one, [], { deliveries, notifyAfterMs: HOUR }))).not.toHaveProperty("due");
      await accept(store, submit(two, [], { deliveries, notifyAfterMs: 0 }));
      expect((await claim(store)).map(({ delivery }) => delivery.taskId)).toEqual([two]);
      expect((await store.claimDeliveries(query())).nextInMs).toBeGreaterThan(0);
      expect(await writeOne(store, moreOf(one, 1))).toMatchObject({ due: ["webhook"] });
      expect((await claimOne(store)).delivery).toMatchObject({ taskId: one, cursor: 0 });
    });

    it("goes on while its holder holds, and is due at once if it lets go too early", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id, [statusEvent(id, status(WORKING))], { deliveries: [registration("one")] }));
      const claimed = await claimOne(store);
      expect(await writeOne(store, progress(claimed, 1, { kind: "hold", ttlMs: HOUR }))).not.toHaveProperty("due");
      expect(await claim(store)).toEqual([]);
      await accept(store, moreOf(id, 2));
      expect(await writeOne(store, progress(claimed, 2, RELEASE))).toMatchObject({ due: ["webhook"] });
      const again = await claimOne(store);
      expect(again.delivery.cursor).toBe(2);
      expect(again.claim).toBeGreaterThan(claimed.claim);
    });

    it("goes to another when a claim has ended, and the late one is refused", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [registration("one")] }));
      const [late] = await claim(store, { node: "a", ttlMs: 0 });
      const [next] = await claim(store, { node: "b" });
      if (late === undefined || next === undefined) throw new Error("expected two claims");
      expect(await writeOne(store, progress(late, 2, RELEASE))).toEqual({ ok: false, refusal: "fenced" });
      await accept(store, progress(next, 1, RELEASE));
      expect((await store.delivery(id, "webhooks", "one"))?.delivery.cursor).toBe(1);
    });

    it("waits after a failure, which is forgiven once something is told", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [registration("one")] }));
      const error = "HTTP 503 \0";
      await accept(store, progress(await claimOne(store), 0, { kind: "retry", inMs: 0, error }));
      const second = await claimOne(store);
      expect(second.attempts).toBe(1);
      await accept(store, progress(second, 0, { kind: "retry", inMs: HOUR, error }));
      const { claims, nextInMs } = await store.claimDeliveries(query());
      expect(claims).toEqual([]);
      expect(nextInMs).toBeGreaterThan(HOUR / 2);
      expect(await store.pendingDeliveries({ limit: 10 })).toMatchObject([
        {
          taskId: id,
          deliveryId: "one",
          cursor: 0,
          number: 2,
          attempts: 2,
          dueAt: expect.any(Number),
          lastError: error,
        },
      ]);
      expect(await store.redeliver({ taskId: id })).toHaveLength(1);
      await accept(store, progress(await claimOne(store), 1, { kind: "retry", inMs: 0, error: "other" }));
      expect((await claimOne(store)).attempts).toBe(1);
    });

    it("that was given up stays so until somebody asks for it", async () => {
      const store = await open();
      const [id, other] = [uniqueId(), uniqueId()];
      await accept(store, submit(id, [], { deliveries: [registration("one")] }));
      await accept(store, progress(await claimOne(store), 0, { kind: "dead", error: "gone" }));
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await claim(store)).toEqual([]);
      const dead = { taskId: id, deliveryId: "one", attempts: 1, lastError: "gone", deadAt: expect.any(Number) };
      expect(await store.pendingDeliveries({ limit: 10, dead: true })).toMatchObject([dead]);
      await accept(store, finished(other, 1, { deliveries: [registration("two")] }));
      expect(await store.pendingDeliveries({ limit: 10, dead: true })).toHaveLength(1);
      expect(await store.pendingDeliveries({ limit: 10, taskId: other })).toMatchObject([{ deliveryId: "two" }]);
      const [first] = await store.pendingDeliveries({ limit: 1 });
      expect(await store.pendingDeliveries({ limit: 10, after: first?.place ?? 0 })).toMatchObject([
        { deliveryId: "two" },
      ]);
      expect(await store.redeliver({ taskId: other })).toEqual([]);
      const due = { taskId: id, deliveryId: "one", dialect: registration("one").dialect, scope: ALICE };
      expect(await store.redeliver({})).toMatchObject([due]);
      expect(await store.pendingDeliveries({ limit: 10, dead: true })).toEqual([]);
      expect(idsIn(await claim(store)).sort()).toEqual(["one", "two"]);
    });

    it("can be told again from any event", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [registration("one"), registration("two")] }));
      for (const claimed of await claim(store)) await accept(store, progress(claimed, 2, RELEASE));
      expect(await store.redeliver({ taskId: id })).toEqual([]);
      expect(await store.redeliver({ taskId: id, deliveryId: "two", from: 2 })).toMatchObject([{ deliveryId: "two" }]);
      expect((await claimOne(store)).delivery).toMatchObject({ id: "two", cursor: 1 });
      expect(await store.redeliver({ taskId: uniqueId(), from: 1 })).toEqual([]);
    });

    it("is bounded for each host, and those behind a full one get their turn", async () => {
      const store = await open();
      const id = uniqueId();
      const slow = Array.from({ length: 8 }, (_, at) =>
        registration(`slow ${at}`, { address: `http://slow.example/${at}` }),
      );
      const deliveries = [...slow, registration("quick"), registration("odd", { address: "no address" })];
      await accept(store, finished(id, 1, { deliveries }));
      const first = await claim(store, { max: 4, perLane: 2 });
      expect(idsIn(first).sort()).toEqual(["odd", "quick", "slow 0", "slow 1"]);
      const busy = new Map([["slow.example", 2]]);
      expect(await claim(store, { max: 4, perLane: 2, busy })).toEqual([]);
      expect(await claim(store, { max: 0, perLane: 2 })).toEqual([]);
      expect(idsIn(await claim(store, { perLane: 3, busy }))).toEqual(["slow 2"]);
    });
  });

  describe("a delivery that changes while it is under way", () => {
    it("and is deleted is told nothing more", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [registration("one")] }));
      const claimed = await claimOne(store);
      await accept(store, { kind: "delivery-delete", ...ALICE, id, group: "webhooks", deliveryId: "one" });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      await accept(store, { kind: "delivery-put", ...ALICE, id, delivery: registration("one") });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      expect(await claim(store)).toEqual([]);
    });

    it("and is replaced tells the new address what it had not told yet, even if it had given up", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [registration("one")] }));
      const claimed = await claimOne(store);
      const delivery = registration("one", { address: "https://new.example/" });
      expect(await writeOne(store, { kind: "delivery-put", ...ALICE, id, delivery })).toMatchObject({
        due: ["webhook"],
      });
      expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "fenced" });
      const again = await claimOne(store);
      expect(again).toMatchObject({ lane: "new.example", delivery: { address: delivery.address, cursor: 0 } });
      await accept(store, progress(again, 0, { kind: "dead", error: "gone" }));
      await accept(store, { kind: "delivery-put", ...ALICE, id, delivery });
      expect(await claimOne(store)).toMatchObject({ attempts: 0 });
    });

    it("and goes with its task is told nothing more", async () => {
      const store = await open();
      const [taken, pruned] = [uniqueId(), uniqueId()];
      const deliveries = [registration("one")];
      await accept(store, submit(taken, [], { node: "n", deliveries }), finished(pruned, 1, { deliveries }));
      const claims = await claim(store);
      await accept(store, { kind: "discard", id: taken, fence: 1, reply: message("plain") });
      expect(await store.prune(0, 10)).toBe(1);
      for (const claimed of claims) {
        expect(await writeOne(store, progress(claimed, 1, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      }
      expect(claims).toHaveLength(2);
      expect(await store.pendingDeliveries({ limit: 10 })).toEqual([]);
      expect(await store.redeliver({})).toEqual([]);
    });
  });
}
