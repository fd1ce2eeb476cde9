import { describe, expect, it } from "vitest";
import type { Lease, TaskStore, Wakeup, Write } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  chunkEvent,
  finished,
  INPUT_REQUIRED,
  status,
  statusEvent,
  submit,
  uniqueId,
  WORKING,
  writeOne,
} from "./fixtures.ts";

/** A node announced with this is silent for too long at once. */
const DEAD = -1;
const LIVING = 60_000;

export function describeLeases(store: () => TaskStore): void {
  /** An agent of its own keeps the claims of one test away from the tasks of others. */
  const parties = () => ({ agent: uniqueId("agent"), node: uniqueId("node"), other: uniqueId("node"), id: uniqueId() });
  const fenceOf = (leases: readonly Lease[]) => leases.map(({ head, fence }) => [head.id, fence]);

  describe("fences", () => {
    it("refuse writes of a run whose lease moved on", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      await store().heartbeat(node, DEAD);
      expect(fenceOf(await store().claim(other, [agent], 5))).toEqual([[id, 2]]);
      const writes: Write[] = [
        append(id, 1, [chunkEvent(id, [{ text: "zombie" }])], { fence: 1 }),
        append(id, 1, [statusEvent(id, status(COMPLETED))], { fence: 1 }),
        append(id, 1, [], { fence: 1, lease: "release" }),
        { kind: "remember", id, fence: 1, key: "k", value: "1" },
        { kind: "discard", id, fence: 1, reply: { messageId: "m", role: "ROLE_AGENT", parts: [] } },
      ];
      for (const write of writes) expect(await writeOne(store(), write)).toEqual({ ok: false, refusal: "fenced" });
      expect(await store().head(id)).toMatchObject({ number: 1, node: other, fence: 2, attempt: 2 });
      await accept(store(), append(id, 1, [chunkEvent(id, [{ text: "heir" }])], { fence: 2 }));
    });

    it("come with all that is kept of the task, also in the middle of a stream", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1))], { agent, node }));
      for (const number of [2, 3, 4]) {
        await accept(
          store(),
          append(id, number, [chunkEvent(id, [{ text: "x".repeat(5_000) }], number > 2)], { fence: 1 }),
        );
      }
      await store().heartbeat(node, DEAD);
      const [lease] = await store().claim(other, [agent], 5);
      expect(lease?.head.bytes).toBeGreaterThan(15_000);
      expect(lease?.head.bytes).toBeLessThan(40_000);
    });

    it.each(["claim", "cancel"])("refuse a run in the middle of its stream, after a %s", async (how) => {
      const { agent, node, other, id } = parties();
      const chunk = (number: number, fence: number) =>
        append(id, number, [chunkEvent(id, [{ text: String(number) }], number > 2)], { fence });
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1))], { agent, node }));
      for (const number of [2, 3, 4]) await accept(store(), chunk(number, 1));
      if (how === "cancel") await accept(store(), { kind: "request-cancel", id, take: other });
      else {
        await store().heartbeat(node, DEAD);
        expect(await store().claim(other, [agent], 5)).toMatchObject([{ fence: 2, head: { number: 5 } }]);
      }
      expect(await writeOne(store(), chunk(5, 1))).toEqual({ ok: false, refusal: "fenced" });
      await accept(store(), chunk(5, 2));
      await accept(store(), append(id, 6, [statusEvent(id, status(WORKING, 2))]));
      expect(await writeOne(store(), chunk(6, 2))).toEqual({ ok: false, refusal: "position" });
      await accept(store(), chunk(7, 2), submit(uniqueId(), [], { agent, node: other }));
      await accept(store(), append(id, 8, [statusEvent(id, status(COMPLETED, 3))], { fence: 2 }));
      expect(await writeOne(store(), chunk(9, 2))).toEqual({ ok: false, refusal: "terminal" });
      expect(await store().numbers([id])).toEqual([9]);
    });

    it("do not hinder a writer that names none", async () => {
      const { agent, node, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      await accept(store(), append(id, 1, [statusEvent(id, status("TASK_STATE_CANCELED"))]));
      expect(await store().head(id)).toMatchObject({ node: undefined, fence: 1 });
    });
  });

  describe("a message from outside the run", () => {
    it("leaves the lease where it is", async () => {
      const { agent, node, id } = parties();
      await accept(store(), submit(id, [statusEvent(id, status(INPUT_REQUIRED, 1))], { agent, node }));
      await accept(store(), append(id, 2, [statusEvent(id, status(WORKING, 2))]));
      expect(await store().head(id)).toMatchObject({ number: 3, node, fence: 1, turn: 1, attempt: 1 });
    });

    it("is the turn that a claim of a parked task begins with, and later ones follow it", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      const park = append(id, 1, [statusEvent(id, status(INPUT_REQUIRED, 1))], { fence: 1, lease: "release" });
      await accept(store(), park);
      await accept(store(), append(id, 2, [statusEvent(id, status(WORKING, 2))]));
      await accept(store(), append(id, 3, [statusEvent(id, status(WORKING, 3))]));
      expect(await store().head(id)).toMatchObject({ node: undefined, fence: 1, turn: 3, attempt: 0 });
      expect(await store().claim(other, [agent], 5)).toMatchObject([{ fence: 2, head: { id, turn: 3, attempt: 1 } }]);
    });
  });

  describe("a run that waits in line", () => {
    it("is counted when it begins, whether the task is new or was parked", async () => {
      const { agent, node, id } = parties();
      await accept(store(), submit(id, [], { agent, node, begins: false }));
      expect(await store().head(id)).toMatchObject({ node, fence: 1, attempt: 0 });
      await accept(store(), append(id, 1, [], { fence: 1, begins: true }));
      expect(await store().head(id)).toMatchObject({ node, fence: 1, attempt: 1 });
      await accept(store(), append(id, 1, [statusEvent(id, status(INPUT_REQUIRED, 1))], { lease: "release" }));
      const take = append(id, 2, [statusEvent(id, status(WORKING, 2))], {
        lease: { take: node },
        turn: 3,
        begins: false,
      });
      await accept(store(), take);
      expect(await store().head(id)).toMatchObject({ node, fence: 2, turn: 3, attempt: 0 });
      await accept(store(), append(id, 3, [], { fence: 2, begins: true }));
      expect(await store().head(id)).toMatchObject({ fence: 2, attempt: 1 });
    });

    it("begins with whoever claims it after a crash", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node, begins: false }));
      await store().heartbeat(node, DEAD);
      const [lease] = await store().claim(other, [agent], 5);
      expect(lease).toMatchObject({ fence: 2, head: { id, attempt: 1 } });
    });

    it("is not counted while it waits for the node that claimed it", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node, begins: false }));
      await store().heartbeat(node, DEAD);
      await store().claim(other, [agent], 5);
      await accept(store(), append(id, 1, [], { fence: 2, begins: false }));
      expect(await store().head(id)).toMatchObject({ node: other, fence: 2, attempt: 0 });
      await accept(store(), append(id, 1, [], { fence: 2, begins: true }));
      expect(await store().head(id)).toMatchObject({ node: other, fence: 2, attempt: 1 });
    });
  });

  describe("a task that is handed over", () => {
    it("waits for a claim at once, and its runs so far count as one", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      for (const next of [other, node]) {
        const { fence } = (await store().head(id)) ?? { fence: 0 };
        await accept(store(), append(id, 1, [], { fence, lease: "release", begins: false }));
        expect(await store().head(id)).toMatchObject({ node: undefined, attempt: 1 });
        expect(await store().claim(next, [agent], 5)).toMatchObject([{ fence: fence + 1, head: { attempt: 2 } }]);
        expect(await store().write([append(id, 1, [], { fence })])).toEqual([{ ok: false, refusal: "fenced" }]);
      }
    });

    it("has none that counts if none began", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node, begins: false }));
      await accept(store(), append(id, 1, [], { fence: 1, lease: "release", begins: false }));
      expect(await store().claim(other, [agent], 5)).toMatchObject([{ fence: 2, head: { attempt: 1 } }]);
    });
  });

  describe("take and release", () => {
    it("hands a parked task on with a higher fence", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      const park = append(id, 1, [statusEvent(id, status(INPUT_REQUIRED, 1))], { fence: 1, lease: "release" });
      expect(await writeOne(store(), park)).toEqual({ ok: true, number: 2, fence: 1 });
      expect(await store().head(id)).toMatchObject({ node: undefined, fence: 1, attempt: 1 });
      expect(await store().claim(other, [agent], 5)).toEqual([]);
      const take = append(id, 2, [statusEvent(id, status(WORKING, 2))], { lease: { take: other }, turn: 3 });
      expect(await writeOne(store(), take)).toEqual({ ok: true, number: 3, fence: 2 });
      expect(await store().head(id)).toMatchObject({ node: other, fence: 2, turn: 3, attempt: 1 });
    });

    it("is refused while another node holds the task, not to the holder itself", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      const take = (taker: string) => append(id, 1, [], { lease: { take: taker } });
      expect(await writeOne(store(), take(other))).toEqual({ ok: false, refusal: "fenced" });
      await store().heartbeat(node, LIVING);
      expect(await writeOne(store(), take(other))).toEqual({ ok: false, refusal: "fenced" });
      expect(await writeOne(store(), take(node))).toEqual({ ok: true, number: 1, fence: 2 });
    });

    it("gives no lease of a task that ends with the same write", async () => {
      const { agent, node, id } = parties();
      await accept(store(), submit(id, [], { agent }));
      await accept(store(), append(id, 1, [statusEvent(id, status(COMPLETED))], { lease: { take: node } }));
      expect(await store().head(id)).toMatchObject({ node: undefined });
    });
  });

  describe("claim", () => {
    it("takes active tasks that nobody holds, of the agents named, and no more than asked", async () => {
      const { agent, node } = parties();
      const [first, second, third, parked, ended, foreign] = Array.from({ length: 6 }, () => uniqueId());
      await accept(
        store(),
        submit(first as string, [], { agent }),
        submit(second as string, [statusEvent(second as string, status(WORKING, 1))], { agent }),
        submit(third as string, [], { agent }),
        submit(parked as string, [statusEvent(parked as string, status(INPUT_REQUIRED, 1))], { agent }),
        finished(ended as string, 1, { agent }),
        submit(foreign as string, [], { agent: `${agent} of another` }),
      );
      expect(await store().claim(node, [], 9)).toEqual([]);
      expect(await store().claim(node, [agent], 0)).toEqual([]);
      const claimed = await store().claim(node, [agent], 2);
      expect(claimed).toHaveLength(2);
      const rest = await store().claim(node, [agent, "unknown"], 9);
      expect(fenceOf([...claimed, ...rest]).sort()).toEqual([
        [first, 1],
        [second, 1],
        [third, 1],
      ]);
      for (const { head, fence } of claimed) {
        expect(head).toMatchObject({ node, fence, attempt: 1, agent });
        expect(await store().head(head.id)).toEqual(head);
      }
      expect(await store().claim(node, [agent], 9)).toEqual([]);
    });

    it("takes over from a node that fell silent, also what waits for a caller, never from a living one", async () => {
      const { agent, node, other, id } = parties();
      const parked = uniqueId();
      await accept(store(), submit(id, [], { agent, node }));
      await accept(store(), submit(parked, [statusEvent(parked, status(INPUT_REQUIRED, 1))], { agent, node }));
      await store().heartbeat(other, LIVING);
      await store().heartbeat(node, LIVING);
      expect(await store().claim(other, [agent], 5)).toEqual([]);
      await store().heartbeat(node, DEAD);
      expect(fenceOf(await store().claim(other, [agent], 5)).sort()).toEqual(
        [
          [id, 2],
          [parked, 2],
        ].sort(),
      );
      await store().heartbeat(node, LIVING);
      expect(await store().claim(node, [agent], 5)).toEqual([]);
    });

    it("does not trust its own beat more than others do", async () => {
      const { agent, node, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      await store().heartbeat(node, DEAD);
      expect(await store().claim(node, [agent], 5)).toEqual([]);
    });

    it("gives each task to one claimant", async () => {
      const { agent } = parties();
      const ids = Array.from({ length: 20 }, () => uniqueId());
      await accept(store(), ...ids.map((id) => submit(id, [], { agent })));
      const nodes = Array.from({ length: 5 }, () => uniqueId("node"));
      const claims = await Promise.all(nodes.map((node) => store().claim(node, [agent], 7)));
      const claimed = claims.flat().map(({ head }) => head.id);
      expect(claimed.sort()).toEqual(ids.sort());
    });
  });

  describe("request-cancel", () => {
    it("is told to the node that holds the task", async () => {
      const { agent, node, other, id } = parties();
      const ended = uniqueId();
      await accept(store(), submit(id, [], { agent, node }), finished(ended));
      expect(await store().heartbeat(node, LIVING)).toEqual([]);
      expect(await writeOne(store(), { kind: "request-cancel", id })).toEqual({ ok: true, number: 1, fence: 1 });
      expect(await store().head(id)).toMatchObject({ cancelRequested: true, number: 1 });
      expect(await store().heartbeat(other, LIVING)).toEqual([]);
      expect(await store().heartbeat(node, LIVING)).toEqual([id]);
      await accept(store(), append(id, 1, [statusEvent(id, status("TASK_STATE_CANCELED"))], { fence: 1 }));
      expect(await store().heartbeat(node, LIVING)).toEqual([]);
      expect(await writeOne(store(), { kind: "request-cancel", id: ended })).toMatchObject({ refusal: "terminal" });
      expect(await writeOne(store(), { kind: "request-cancel", id: uniqueId() })).toMatchObject({ refusal: "missing" });
    });

    it("takes the lease from a node that lives, for one that will end the task", async () => {
      const { agent, node, other, id } = parties();
      await accept(store(), submit(id, [], { agent, node }));
      await store().heartbeat(node, LIVING);
      const taken = await writeOne(store(), { kind: "request-cancel", id, take: other });
      expect(taken).toEqual({ ok: true, number: 1, fence: 2 });
      expect(await store().head(id)).toMatchObject({ cancelRequested: true, node: other, fence: 2, attempt: 1 });
      const late = append(id, 1, [chunkEvent(id, [{ text: "late" }])], { fence: 1 });
      expect(await writeOne(store(), late)).toMatchObject({ refusal: "fenced" });
      await accept(store(), append(id, 1, [statusEvent(id, status("TASK_STATE_CANCELED"))], { fence: 2 }));
      expect(await writeOne(store(), { kind: "request-cancel", id, take: node })).toMatchObject({
        refusal: "terminal",
      });
    });
  });

  describe("wake-ups", () => {
    it("reach subscribers until they leave", async () => {
      const received: (Wakeup | "all")[] = [];
      const woken = new Promise<void>((resolve) => {
        const leave = store().wakeups.subscribe((wakeup) => {
          received.push(wakeup);
          leave();
          resolve();
        });
      });
      const id = uniqueId();
      const published: Wakeup = { log: [id], cancel: [id], work: true, deliveries: true };
      store().wakeups.publish(published);
      await woken;
      store().wakeups.publish({ log: [uniqueId()] });
      expect(received).toHaveLength(1);
      expect(received[0] === "all" ? published : received[0]).toEqual(published);
    });
  });
}
