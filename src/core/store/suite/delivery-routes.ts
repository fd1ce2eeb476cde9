import { describe, expect, it } from "vitest";
import type { DeliveryClaim, DeliveryPut, DeliveryRegistration, TaskStore, WriteResult } from "../contract.ts";
import { claim, HOUR, idsIn, moreOf, progress, query, RELEASE } from "./delivery-claims.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  finished,
  INPUT_REQUIRED,
  registration,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  writeOne,
} from "./fixtures.ts";

function endOf(id: string, after: number) {
  return append(id, after, [statusEvent(id, status(COMPLETED, 9))]);
}

function inRoom(id: string, more: Partial<DeliveryRegistration> = {}): DeliveryRegistration {
  return registration(id, { route: "room:a", address: "{}", ...more });
}

function putOf(id: string, delivery: DeliveryRegistration, after?: number): DeliveryPut {
  return { kind: "delivery-put", ...ALICE, id, delivery, ...(after === undefined ? undefined : { after }) };
}

function heldIn(result: WriteResult): DeliveryClaim {
  const [held] = result.ok ? (result.held ?? []) : [];
  if (held === undefined) throw new Error("expected a delivery that is held");
  return held;
}

/** Deliveries of the server's own routes. Each test opens a store of its own. */
export function describeDeliveryRoutes(open: () => Promise<TaskStore>): void {
  describe("routes", () => {
    it("are claimed apart, each with its own lane", async () => {
      const store = await open();
      const id = uniqueId();
      const deliveries = [registration("hook"), inRoom("a"), inRoom("b", { route: "room:b" })];
      expect(await writeOne(store, finished(id, 1, { deliveries }))).toMatchObject({
        due: ["webhook", "room:a", "room:b"],
      });
      expect(await claim(store, { route: "unknown" })).toEqual([]);
      expect(await claim(store, { route: "room:a" })).toMatchObject([
        { lane: "room:a", delivery: { id: "a", route: "room:a", address: "{}" } },
      ]);
      expect((await store.claimDeliveries(query({ route: "room:a" }))).nextInMs).toBeGreaterThan(0);
      expect(await claim(store, { route: "room:b" })).toHaveLength(1);
      expect(idsIn(await claim(store))).toEqual(["hook"]);
      expect((await store.pendingDeliveries({ limit: 10 })).map(({ route }) => route)).toEqual([
        "webhook",
        "room:a",
        "room:b",
      ]);
    });

    it("change when an answer is sent elsewhere: what was not delivered is due there, under a new claim", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id, [], { deliveries: [inRoom("reply")] }));
      const [reply] = await claim(store, { route: "room:a" });
      if (reply === undefined) throw new Error("expected a claim");
      const delivery = inRoom("reply", { route: "phone", address: "[1]", wants: "outcome" });
      expect(await writeOne(store, putOf(id, delivery))).not.toHaveProperty("due");
      expect(await writeOne(store, progress(reply, 1, RELEASE))).toEqual({ ok: false, refusal: "fenced" });
      expect(await writeOne(store, endOf(id, 1))).toMatchObject({ due: ["phone"] });
      expect(await claim(store, { route: "room:a" })).toEqual([]);
      const [notified] = await claim(store, { route: "phone" });
      expect(notified).toMatchObject({ place: reply.place, delivery: { address: "[1]", wants: "outcome", cursor: 0 } });
      await accept(store, putOf(id, inRoom("reply")));
      expect(await claim(store, { route: "room:a" })).toMatchObject([{ delivery: { cursor: 0 } }]);
    });
  });

  describe("a delivery that is held from the start", () => {
    const heldBy = { node: "n", ttlMs: HOUR };

    it("needs no claim, and progress goes by the one it was written with", async () => {
      const store = await open();
      const id = uniqueId("\ud800");
      const accepted = await writeOne(store, submit(id, [], { deliveries: [inRoom("reply", { heldBy })] }));
      expect(accepted).not.toHaveProperty("due");
      const held = heldIn(accepted);
      expect(held).toMatchObject({ attempts: 0, lane: "room:a", scope: ALICE });
      expect(held.delivery).toEqual({ ...inRoom("reply"), taskId: id, createdAt: expect.any(Number), cursor: 0 });
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await claim(store, { route: "room:a" })).toEqual([]);
      await accept(store, progress(held, 1, { kind: "hold", ttlMs: HOUR }));
      expect(await writeOne(store, progress(held, 1, RELEASE))).toMatchObject({ due: ["room:a"] });
      expect(await claim(store, { route: "room:a" })).toMatchObject([{ place: held.place, delivery: { cursor: 1 } }]);
    });

    it("goes to another node when the claim has ended", async () => {
      const store = await open();
      const id = uniqueId();
      const ended = { node: "n", ttlMs: 0 };
      const held = heldIn(await writeOne(store, submit(id, [], { deliveries: [inRoom("reply", { heldBy: ended })] })));
      const [taken] = await claim(store, { route: "room:a", node: "m" });
      expect(taken).toMatchObject({ place: held.place, delivery: { cursor: 0 } });
      expect(taken?.claim).toBeGreaterThan(held.claim);
      expect(await writeOne(store, progress(held, 1, { kind: "done" }))).toEqual({ ok: false, refusal: "fenced" });
    });

    it("is held anew by a message that registers it again, where it stood", async () => {
      const store = await open();
      const id = uniqueId();
      const deliveries = [inRoom("reply", { heldBy })];
      const first = heldIn(await writeOne(store, submit(id, [], { deliveries })));
      await accept(store, progress(first, 1, RELEASE));
      const asked = append(id, 1, [statusEvent(id, status(WORKING, 1))], { deliveries });
      const second = heldIn(await writeOne(store, asked));
      expect(second).toMatchObject({ place: first.place, delivery: { cursor: 1 } });
      expect(second.claim).toBeGreaterThan(first.claim);
      const third = heldIn(await writeOne(store, putOf(id, inRoom("other", { heldBy }), 1)));
      expect(third.delivery).toMatchObject({ id: "other", cursor: 1 });
    });
  });

  describe("a delivery that wants the outcome", () => {
    it("is due when the task is interrupted or has ended, not before", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, submit(id, [], { deliveries: [inRoom("reply", { wants: "outcome" })] }));
      expect(await writeOne(store, moreOf(id, 1))).not.toHaveProperty("due");
      expect(await store.pendingDeliveries({ limit: 10 })).toEqual([]);
      const asked = append(id, 2, [statusEvent(id, status(INPUT_REQUIRED, 1))]);
      expect(await writeOne(store, asked)).toMatchObject({ due: ["room:a"] });
      const [claimed] = await claim(store, { route: "room:a" });
      if (claimed === undefined) throw new Error("expected a claim");
      expect(claimed.delivery).toMatchObject({ wants: "outcome", cursor: 0 });
      await accept(store, append(id, 3, [statusEvent(id, status(WORKING, 2))]));
      // The user has answered meanwhile: there is nothing to say before the next outcome.
      expect(await writeOne(store, progress(claimed, 3, RELEASE))).not.toHaveProperty("due");
      expect(await claim(store, { route: "room:a" })).toEqual([]);
      expect(await writeOne(store, endOf(id, 4))).toMatchObject({ due: ["room:a"] });
      expect(await claim(store, { route: "room:a" })).toMatchObject([{ delivery: { cursor: 3 } }]);
    });

    it("is due at once for a task that has one already, unless that is known", async () => {
      const store = await open();
      const id = uniqueId();
      const delivery = inRoom("reply", { wants: "outcome" });
      await accept(store, finished(id), putOf(id, inRoom("knows", { wants: "outcome" })), putOf(id, delivery, 0));
      expect(idsIn(await claim(store, { route: "room:a" }))).toEqual(["reply"]);
    });
  });

  describe("a delivery that is done", () => {
    it("is gone, and its neighbours stay", async () => {
      const store = await open();
      const id = uniqueId();
      await accept(store, finished(id, 1, { deliveries: [inRoom("one"), inRoom("two"), registration("one")] }));
      const claims = await claim(store, { route: "room:a" });
      const [first] = claims;
      if (first === undefined) throw new Error("expected a claim");
      expect(await writeOne(store, progress(first, 2, { kind: "done" }))).toEqual({ ok: true, number: 2, fence: 0 });
      expect(await writeOne(store, progress(first, 2, RELEASE))).toEqual({ ok: false, refusal: "missing" });
      expect((await store.deliveries(id, { group: "replies", limit: 9 }))?.deliveries).toMatchObject([{ id: "two" }]);
      expect(await store.delivery(id, "webhooks", "one")).toBeDefined();
    });
  });
}
