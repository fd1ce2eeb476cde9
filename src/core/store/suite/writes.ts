import { describe, expect, it } from "vitest";
import type { TaskStore, Write } from "../contract.ts";
import {
  ALICE,
  accept,
  append,
  COMPLETED,
  chunkEvent,
  contextOf,
  EVERYTHING,
  expectCounter,
  finished,
  listQuery,
  MINUTE,
  message,
  readAll,
  registration,
  SUBMITTED,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  writeOne,
} from "./fixtures.ts";

export function describeWrites(store: () => TaskStore): void {
  describe("submit", () => {
    it("stores a waiting task", async () => {
      const id = uniqueId();
      expect(await writeOne(store(), submit(id))).toEqual({ ok: true, number: 1, fence: 0 });
      expect(await store().head(id)).toEqual({
        ...ALICE,
        id,
        contextId: contextOf(id),
        status: status(SUBMITTED),
        number: 1,
        floor: 0,
        fence: 0,
        node: undefined,
        turn: 1,
        attempt: 0,
        cancelRequested: false,
        bytes: expect.any(Number),
        dialect: "a2a-v1",
        createdAt: expect.any(Number),
      });
    });

    it("tells how much is kept of the task", async () => {
      const id = uniqueId();
      await accept(store(), submit(id));
      const before = (await store().head(id))?.bytes ?? 0;
      await accept(store(), append(id, 1, [statusEvent(id, status(WORKING, 5, "x".repeat(5_000)))]));
      const after = (await store().head(id))?.bytes ?? 0;
      expect(before).toBeGreaterThan(100);
      expect(after - before).toBeGreaterThan(5_000);
      expect(after - before).toBeLessThan(20_000);
    });

    it("gives the lease to the node that asks for it", async () => {
      const id = uniqueId();
      const write = submit(id, [statusEvent(id, status(WORKING, 5, "at it"))], { node: "n1" });
      expect(await writeOne(store(), write)).toEqual({ ok: true, number: 2, fence: 1 });
      const head = await store().head(id);
      expect(head).toMatchObject({ node: "n1", fence: 1, attempt: 1, status: status(WORKING, 5, "at it") });
    });

    it("may go straight to the end, and then nobody holds it", async () => {
      const id = uniqueId();
      expect(await writeOne(store(), finished(id, 1, { node: "n1" }))).toEqual({ ok: true, number: 2, fence: 0 });
      expect(await store().head(id)).toMatchObject({ node: undefined, status: status(COMPLETED, 1) });
    });

    it("refuses an id that is taken, in any scope", async () => {
      const id = uniqueId();
      await accept(store(), submit(id));
      const again = submit(id, [], { ...uniqueScope(), contextId: "other" });
      expect(await writeOne(store(), again)).toEqual({ ok: false, refusal: "exists" });
      expect((await store().head(id))?.contextId).toBe(contextOf(id));
    });
  });

  describe("append", () => {
    it("adds entries and changes the status", async () => {
      const id = uniqueId();
      await accept(store(), submit(id));
      const write = append(id, 1, [statusEvent(id, status(WORKING, 1)), chunkEvent(id, [{ text: "a" }])], { turn: 2 });
      expect(await writeOne(store(), write)).toEqual({ ok: true, number: 3, fence: 0 });
      expect(await store().head(id)).toMatchObject({ number: 3, status: status(WORKING, 1), turn: 2 });
      expect(await readAll(store(), id, 1)).toEqual(write.entries.map((entry) => entry.json));
    });

    it("refuses what does not follow the newest entry", async () => {
      const id = uniqueId();
      await accept(store(), submit(id));
      for (const after of [0, 2]) {
        const write = append(id, after, [chunkEvent(id, [{ text: "a" }])]);
        expect(await writeOne(store(), write)).toEqual({ ok: false, refusal: "position" });
      }
      expect(await store().numbers([id])).toEqual([1]);
    });

    it("refuses an unknown task", async () => {
      const id = uniqueId();
      expect(await writeOne(store(), append(id, 0, []))).toEqual({ ok: false, refusal: "missing" });
      expect(await store().head(id)).toBeUndefined();
    });

    it("ends a task exactly once and releases it", async () => {
      const id = uniqueId();
      await accept(store(), submit(id, [], { node: "n1" }));
      const end = append(id, 1, [statusEvent(id, status(COMPLETED, 1))], { fence: 1 });
      const results = await Promise.all([writeOne(store(), end), writeOne(store(), end), writeOne(store(), end)]);
      expect(results.filter((result) => result.ok)).toHaveLength(1);
      expect(await store().head(id)).toMatchObject({ number: 2, node: undefined });
      for (const write of [append(id, 2, [chunkEvent(id, [])]), append(id, 2, [], { lease: { take: "n1" } })]) {
        expect(await writeOne(store(), write)).toEqual({ ok: false, refusal: "terminal" });
      }
    });
  });

  describe("a group", () => {
    it("has at most one write per task", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const again = [submit(other), submit(id), append(id, 1, [statusEvent(id, status(WORKING, 1))])];
      await expect(store().write(again)).rejects.toThrow(id);
      expect(await store().numbers([id, other])).toEqual([0, 0]);
      const next = { kind: "release" } as const;
      const progress: Write = { kind: "delivery-progress", id, place: 1, claim: 1, cursor: 1, next };
      const put: Write = { kind: "delivery-put", ...ALICE, id, delivery: registration("one") };
      for (const group of [
        [progress, progress],
        [put, progress],
        [progress, submit(id, [], { deliveries: [registration("one")] })],
      ])
        await expect(store().write(group)).rejects.toThrow(id);
      const [, refused] = await store().write([submit(id), progress]);
      expect(refused).toEqual({ ok: false, refusal: "missing" });
    });

    it("has at most one write per record, which is no write of a task", async () => {
      const id = uniqueId();
      const record: Write = { kind: "record-put", space: "a group", key: id, value: "1" };
      await expect(store().write([record, { ...record, kind: "record-delete" }])).rejects.toThrow(id);
      await expect(store().write([submit(id), record, { ...record, space: id }])).resolves.toHaveLength(3);
      expect(await store().record("a group", id)).toBe("1");
    });

    it("is not harmed by a refused neighbour, and the refused one changes nothing", async () => {
      const [first, second, taken, ended] = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
      await accept(store(), submit(taken), submit(second), finished(ended, 1));
      const results = await store().write([
        submit(first),
        submit(taken, [], { contextId: "other" }),
        append(ended, 2, [statusEvent(ended, status(WORKING, 9))]),
        append(uniqueId(), 1, []),
        append(second, 7, [statusEvent(second, status(WORKING, 9))]),
      ]);
      expect(results.map((result) => (result.ok ? "ok" : result.refusal))).toEqual([
        "ok",
        "exists",
        "terminal",
        "missing",
        "position",
      ]);
      expect(await store().numbers([first, second, taken, ended])).toEqual([1, 1, 1, 2]);
      expect((await store().head(taken))?.contextId).toBe(contextOf(taken));
      expect((await store().head(ended))?.status).toEqual(status(COMPLETED, 1));
    });

    it("may be empty", async () => {
      expect(await store().write([])).toEqual([]);
    });

    it("keeps many concurrent writers apart", async () => {
      const ids = Array.from({ length: 8 }, () => uniqueId());
      await accept(store(), ...ids.map((id) => submit(id)));
      const accepted = new Map(ids.map((id) => [id, 0]));
      async function writer(id: string): Promise<void> {
        for (let done = 0; done < 10; ) {
          const [number = 0] = await store().numbers([id]);
          const result = await writeOne(store(), append(id, number, [chunkEvent(id, [{ text: `${number + 1} ` }])]));
          if (!result.ok) continue;
          accepted.set(id, (accepted.get(id) ?? 0) + 1);
          done++;
        }
      }
      await Promise.all(ids.flatMap((id) => [writer(id), writer(id), writer(id)]));
      for (const id of ids) {
        expect(accepted.get(id)).toBe(30);
        const text = Array.from({ length: 30 }, (_, index) => `${index + 2} `).join("");
        const snapshot = await store().snapshot(id, EVERYTHING);
        expect(snapshot).toMatchObject({ number: 31, task: { artifacts: [{ parts: [{ text }] }] } });
      }
    });
  });

  describe("discard", () => {
    it("takes the task back without a trace", async () => {
      const id = uniqueId();
      const scope = uniqueScope();
      await accept(store(), submit(id, [], { ...scope, node: "n1" }));
      await accept(store(), { kind: "remember", id, fence: 1, key: "k", value: "1" });
      const discard: Write = { kind: "discard", id, fence: 1, reply: message("plain") };
      expect(await writeOne(store(), { ...discard, fence: 2 })).toEqual({ ok: false, refusal: "fenced" });
      expect(await writeOne(store(), { ...discard, expect: 2 })).toEqual({ ok: false, refusal: "position" });
      await accept(store(), discard);
      expect(await store().head(id)).toBeUndefined();
      expect(await store().snapshot(id, EVERYTHING)).toBeUndefined();
      expect(await store().read([{ id, after: 0 }], 1)).toEqual([{ kind: "missing" }]);
      expect((await store().memory(id)).size).toBe(0);
      await expectCounter(() => store().list(listQuery(scope))).toEqual({ tasks: [], total: 0 });
      expect(await writeOne(store(), discard)).toEqual({ ok: false, refusal: "missing" });
      await accept(store(), submit(id, [], { ...scope }));
      expect(await store().numbers([id])).toEqual([1]);
    });

    it("refuses a task that ended", async () => {
      const id = uniqueId();
      await accept(store(), finished(id));
      const discard: Write = { kind: "discard", id, fence: 0, reply: message("plain") };
      expect(await writeOne(store(), discard)).toEqual({ ok: false, refusal: "terminal" });
    });
  });

  describe("idempotency", () => {
    const claim = (key: string, fingerprint = "print", ttlMs = MINUTE) => ({ key, fingerprint, ttlMs });

    it("recognises a repeat, within its scope only", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const idempotency = claim(uniqueId("key"));
      await accept(store(), submit(id, [], { idempotency }));
      const record = { fingerprint: "print", taskId: id, reply: undefined };
      const repeat = submit(other, [], { idempotency: { ...idempotency, fingerprint: "another" } });
      expect(await writeOne(store(), repeat)).toEqual({ ok: false, refusal: "duplicate", record });
      expect(await writeOne(store(), submit(id, [], { idempotency }))).toMatchObject({ refusal: "duplicate" });
      expect(await store().findIdempotencyRecord({ ...ALICE, key: idempotency.key })).toEqual(record);
      expect(await store().head(other)).toBeUndefined();
      const bob = { ...ALICE, owner: "bob" };
      expect(await store().findIdempotencyRecord({ ...bob, key: idempotency.key })).toBeUndefined();
      await accept(store(), submit(other, [], { ...bob, idempotency }));
    });

    it("recognises a repeat in the same group", async () => {
      const idempotency = claim(uniqueId("key"));
      const id = uniqueId();
      const results = await store().write([submit(id, [], { idempotency }), submit(uniqueId(), [], { idempotency })]);
      expect(results[1]).toMatchObject({ refusal: "duplicate", record: { taskId: id } });
    });

    it("recognises a repeated message to a task, even if that has ended since", async () => {
      const id = uniqueId();
      const idempotency = claim(uniqueId("key"));
      await accept(store(), submit(id));
      const write = append(id, 1, [statusEvent(id, status(COMPLETED))], { idempotency });
      expect(await writeOne(store(), { ...write, expect: 5 })).toEqual({ ok: false, refusal: "position" });
      expect(await store().findIdempotencyRecord({ ...ALICE, key: idempotency.key })).toBeUndefined();
      await accept(store(), write);
      expect(await writeOne(store(), write)).toMatchObject({ refusal: "duplicate", record: { taskId: id } });
      expect(await writeOne(store(), append(uniqueId(), 1, [], { idempotency }))).toMatchObject({ refusal: "missing" });
    });

    it("keeps the reply of a discarded task", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const idempotency = claim(uniqueId("key"));
      await accept(store(), submit(id, [], { idempotency, node: "n1" }));
      await accept(store(), { kind: "discard", id, fence: 1, reply: message("plain") });
      const record = { fingerprint: "print", taskId: id, reply: message("plain") };
      expect(await store().findIdempotencyRecord({ ...ALICE, key: idempotency.key })).toEqual(record);
      expect(await writeOne(store(), submit(other, [], { idempotency }))).toMatchObject({
        refusal: "duplicate",
        record,
      });
    });

    it("forgets a key past its time", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const key = uniqueId("key");
      await accept(store(), submit(id, [], { idempotency: claim(key, "old", -1) }));
      expect(await store().findIdempotencyRecord({ ...ALICE, key })).toBeUndefined();
      await accept(store(), submit(other, [], { idempotency: claim(key, "new") }));
      expect(await store().findIdempotencyRecord({ ...ALICE, key })).toMatchObject({
        taskId: other,
        fingerprint: "new",
      });
      await accept(store(), append(id, 1, [statusEvent(id, status(COMPLETED))]));
      await store().prune(MINUTE, 10);
      expect(await store().findIdempotencyRecord({ ...ALICE, key })).toMatchObject({ taskId: other });
    });
  });

  describe("memory", () => {
    it("remembers and forgets by key, under the fence", async () => {
      const id = uniqueId();
      await accept(store(), submit(id, [], { node: "n1" }));
      const remember = (key: string, value: string | undefined, fence = 1): Write => ({
        kind: "remember",
        id,
        fence,
        key,
        value,
      });
      await accept(store(), remember("a", "1"), remember("b", '"two"'), remember("a", "3"), remember("", "{}"));
      expect(await store().memory(id)).toEqual(
        new Map([
          ["a", "3"],
          ["b", '"two"'],
          ["", "{}"],
        ]),
      );
      await accept(store(), remember("b", undefined), remember("never", undefined));
      expect(await writeOne(store(), remember("a", "4", 0))).toEqual({ ok: false, refusal: "fenced" });
      expect(await store().memory(id)).toEqual(
        new Map([
          ["a", "3"],
          ["", "{}"],
        ]),
      );
      await accept(store(), append(id, 1, [statusEvent(id, status(COMPLETED))], { fence: 1 }));
      expect(await writeOne(store(), remember("a", "4"))).toEqual({ ok: false, refusal: "terminal" });
      expect((await store().memory(id)).get("a")).toBe("3");
      expect(await store().memory(uniqueId())).toEqual(new Map());
    });
  });
}
