import { describe, expect, it } from "vitest";
import type { PushPut, Scope, TaskStore } from "../contract.ts";
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

function put(id: string, configId: string, more: Partial<PushPut> = {}): PushPut {
  return { kind: "push-put", ...ALICE, id, config: registration(configId), ...more };
}

async function idsOf(store: TaskStore, id: string, limit = 100): Promise<readonly string[] | undefined> {
  return (await store.pushConfigs(id, { limit }))?.configs.map((config) => config.id);
}

/** `open`: for those that act on the whole store. */
export function describePushConfigs(store: () => TaskStore, open: () => Promise<TaskStore>): void {
  describe("push configs", () => {
    it("are kept with where the log stood, and say whose they are", async () => {
      const id = uniqueId();
      const scope = uniqueScope();
      await accept(store(), submit(id, [statusEvent(id, status(WORKING, 1))], scope));
      const config = registration("one", {
        token: "secret \0 \ud800 \u0001",
        authentication: { scheme: "Bearer", credentials: "\0 \udfff" },
        dialect: "another",
      });
      expect(await writeOne(store(), put(id, "one", { ...scope, config }))).toEqual({ ok: true, number: 2, fence: 0 });
      const stored = { ...config, taskId: id, createdAt: expect.any(Number), cursor: 2 };
      const found = await store().pushConfig(id, "one");
      expect(found?.config).toEqual(stored);
      expect(found?.scope).toMatchObject(scope);
      const page = await store().pushConfigs(id, { limit: 10 });
      expect(page?.configs).toEqual([stored]);
      expect(page?.next).toBeUndefined();
      expect(page?.scope).toMatchObject(scope);
    });

    it("have any id", async () => {
      const id = uniqueId("\ud800 task");
      const configIds = ["\0", "\ud800", "", "\u0001", "ä"];
      await accept(store(), submit(id), ...configIds.map((configId) => put(id, configId)));
      expect(await idsOf(store(), id)).toEqual(configIds);
      for (const configId of configIds) {
        expect((await store().pushConfig(id, configId))?.config).toMatchObject({ id: configId, taskId: id });
      }
    });

    it("are replaced by one of the same id, which stays in their place", async () => {
      const id = uniqueId();
      const first = registration("one", { token: "t", authentication: { scheme: "Basic", credentials: "c" } });
      await accept(store(), submit(id), put(id, "one", { config: first }), put(id, "two"));
      const before = await store().pushConfig(id, "one");
      await accept(store(), append(id, 1, [chunkEvent(id, [{ text: "a" }])]));
      const second = { id: "one", url: "http://other.example/", dialect: "another" };
      await accept(store(), put(id, "one", { config: second }));
      expect((await store().pushConfig(id, "one"))?.config).toEqual({
        ...second,
        taskId: id,
        createdAt: before?.config.createdAt,
        cursor: 1,
      });
      expect(await idsOf(store(), id)).toEqual(["one", "two"]);
    });

    it("are deleted alone, once or more often", async () => {
      const id = uniqueId();
      await accept(store(), submit(id), put(id, "one"), put(id, "two"));
      const gone = { kind: "push-delete" as const, ...ALICE, id, configId: "one" };
      await accept(store(), gone, gone);
      await accept(store(), gone);
      expect(await store().pushConfig(id, "one")).toBeUndefined();
      expect(await idsOf(store(), id)).toEqual(["two"]);
      await accept(store(), append(id, 1, [chunkEvent(id, [{ text: "a" }])]), put(id, "one"));
      expect((await store().pushConfig(id, "one"))?.config.cursor).toBe(2);
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
        expect(await writeOne(store(), { kind: "push-delete", ...scope, id, configId: "one" })).toEqual(MISSING);
      }
      expect(await writeOne(store(), put(unknown, "one"))).toEqual(MISSING);
      expect(await writeOne(store(), { kind: "push-delete", ...ALICE, id: unknown, configId: "one" })).toEqual(MISSING);
      expect(await idsOf(store(), id)).toEqual(["one"]);
      expect(await store().pushConfig(unknown, "one")).toBeUndefined();
      expect(await store().pushConfigs(unknown, { limit: 1 })).toBeUndefined();
    });

    it("of several tasks do not meet", async () => {
      const [one, two] = [uniqueId(), uniqueId()];
      await accept(store(), submit(one), submit(two), put(one, "a"), put(two, "b"), put(one, "c"), put(two, "a"));
      expect(await idsOf(store(), one)).toEqual(["a", "c"]);
      expect(await idsOf(store(), two)).toEqual(["b", "a"]);
      await accept(store(), { kind: "push-delete", ...ALICE, id: two, configId: "a" });
      expect(await idsOf(store(), one)).toEqual(["a", "c"]);
    });

    it("may be added to a task that has ended, whoever held it last", async () => {
      const id = uniqueId();
      await accept(store(), finished(id), put(id, "one"));
      expect((await store().pushConfig(id, "one"))?.config.cursor).toBe(2);
    });
  });

  describe("pages of push configs", () => {
    it("follow each other in the order of creation", async () => {
      const id = uniqueId();
      const all = Array.from({ length: 7 }, (_, index) => `config ${(index * 3) % 7}`);
      await accept(store(), submit(id), ...all.map((configId) => put(id, configId)));
      const met: string[] = [];
      let after: number | undefined;
      do {
        const page = await store().pushConfigs(id, { limit: 3, ...(after === undefined ? undefined : { after }) });
        met.push(...(page?.configs ?? []).map((config) => config.id));
        after = page?.next;
      } while (after !== undefined);
      expect(met).toEqual(all);
      expect((await store().pushConfigs(id, { limit: 7 }))?.next).toBeUndefined();
    });

    it("miss nothing that stays or comes, whatever is deleted meanwhile", async () => {
      const id = uniqueId();
      await accept(store(), submit(id), put(id, "a"), put(id, "b"), put(id, "c"));
      const page = await store().pushConfigs(id, { limit: 2 });
      expect(page?.configs.map((config) => config.id)).toEqual(["a", "b"]);
      const deleted = ["a", "b", "c"].map((configId) => ({ kind: "push-delete" as const, ...ALICE, id, configId }));
      await accept(store(), ...deleted, put(id, "d"), put(id, "b"));
      const rest = await store().pushConfigs(id, { limit: 10, after: page?.next ?? Number.NaN });
      expect(rest?.configs.map((config) => config.id)).toEqual(["d", "b"]);
    });
  });

  describe("push configs with other writes", () => {
    it("come with a submit, from before its first event", async () => {
      const id = uniqueId();
      await accept(store(), finished(id, 1, { push: [registration("one"), registration("two")] }));
      expect((await store().pushConfigs(id, { limit: 9 }))?.configs).toMatchObject([
        { ...registration("one"), cursor: 0 },
        { ...registration("two"), cursor: 0 },
      ]);
    });

    it("do not come with a submit that is refused", async () => {
      const [id, other] = [uniqueId(), uniqueId()];
      const scope = uniqueScope();
      const idempotency = { key: "key", fingerprint: "print", ttlMs: MINUTE };
      const push = [registration("one")];
      await accept(store(), submit(id, [], { ...scope, idempotency }));
      expect(await writeOne(store(), submit(id, [], { ...scope, push }))).toMatchObject({ refusal: "exists" });
      const again = submit(other, [], { ...scope, idempotency, push });
      expect(await writeOne(store(), again)).toMatchObject({ refusal: "duplicate" });
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), other)).toBeUndefined();
    });

    it("come with an append, from before its entries", async () => {
      const id = uniqueId();
      await accept(store(), submit(id, [], { push: [registration("one")] }));
      const events = [statusEvent(id, status(WORKING, 1)), chunkEvent(id, [{ text: "a" }])];
      const push = [registration("two"), registration("one", { token: "t" })];
      await accept(store(), append(id, 1, events, { push }));
      expect((await store().pushConfigs(id, { limit: 9 }))?.configs).toMatchObject([
        { ...registration("one"), token: "t", cursor: 0 },
        { ...registration("two"), cursor: 1 },
      ]);
    });

    it("do not come with an append that is refused", async () => {
      const [id, ended] = [uniqueId(), uniqueId()];
      await accept(store(), submit(id), finished(ended));
      const push = [registration("one")];
      expect(await writeOne(store(), append(id, 2, [], { push }))).toMatchObject({ refusal: "position" });
      expect(await writeOne(store(), append(id, 1, [], { fence: 4, push }))).toMatchObject({ refusal: "fenced" });
      expect(await writeOne(store(), append(ended, 2, [], { push }))).toMatchObject({ refusal: "terminal" });
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), ended)).toEqual([]);
    });

    it("go with a task that is taken back", async () => {
      const [id, neighbour] = [uniqueId(), uniqueId()];
      const push = [registration("one")];
      await accept(store(), submit(id, [], { node: "n", push }), submit(neighbour, [], { push }));
      await accept(store(), { kind: "discard", id, fence: 1, reply: message("plain") });
      expect(await store().pushConfig(id, "one")).toBeUndefined();
      expect(await idsOf(store(), id)).toBeUndefined();
      await accept(store(), submit(id));
      expect(await idsOf(store(), id)).toEqual([]);
      expect(await idsOf(store(), neighbour)).toEqual(["one"]);
    });

    it("outlive the log of an ended task, and go when it is pruned", async () => {
      const own = await open();
      const [id, running] = [uniqueId(), uniqueId()];
      const push = [registration("one")];
      await accept(own, finished(id, 1, { push }), submit(running, [], { push }));
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
