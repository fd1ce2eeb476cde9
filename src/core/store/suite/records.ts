import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RecordPut, TaskStore } from "../contract.ts";
import { accept, MINUTE, writeOne } from "./fixtures.ts";

const SPACE = "space";

function put(key: string, value: string, more: Partial<RecordPut> = {}): RecordPut {
  return { kind: "record-put", space: SPACE, key, value, ...more };
}

async function keysOf(store: TaskStore, limit = 100, after?: string): Promise<readonly string[]> {
  const query = { limit, ...(after === undefined ? undefined : { after }) };
  return (await store.records(SPACE, query)).map(({ key }) => key);
}

export function describeRecords(open: () => Promise<TaskStore>): void {
  describe("records", () => {
    it("are put, replaced, read and deleted by space and key", async () => {
      const store = await open();
      expect(await writeOne(store, put("a", "1"))).toEqual({ ok: true, number: 0, fence: 0 });
      await accept(store, put("b", "2"), put("a", "3"), put("a", "other", { space: "other" }));
      expect(await store.record(SPACE, "a")).toBe("3");
      expect(await store.records(SPACE, { limit: 10 })).toEqual([
        { key: "a", value: "3" },
        { key: "b", value: "2" },
      ]);
      const gone = { kind: "record-delete" as const, space: SPACE, key: "a" };
      await accept(store, gone, gone);
      expect(await store.record(SPACE, "a")).toBeUndefined();
      expect(await store.record("other", "a")).toBe("other");
      expect(await store.records("unknown", { limit: 10 })).toEqual([]);
    });

    it("of any names are all met by a walk", async () => {
      const store = await open();
      const keys = ["", "\0", "\ud800", "\u0001", "ä", "z", '["a","b"]'];
      await accept(store, ...keys.map((key) => put(key, JSON.stringify(key))));
      const met: string[] = [];
      for (let page = await keysOf(store, 2); page.length > 0; page = await keysOf(store, 2, met.at(-1))) {
        met.push(...page);
      }
      expect([...met].sort()).toEqual([...keys].sort());
      for (const key of keys) expect(await store.record(SPACE, key)).toBe(JSON.stringify(key));
    });

    it("are changed only by those who know what is there", async () => {
      const store = await open();
      const refused = { ok: false, refusal: "position" };
      expect(await writeOne(store, put("a", "1", { ifValue: "0" }))).toEqual(refused);
      await accept(store, put("a", "1", { ifValue: null }));
      expect(await writeOne(store, put("a", "2", { ifValue: null }))).toEqual(refused);
      expect(await writeOne(store, put("a", "2", { ifValue: "0" }))).toEqual(refused);
      expect(await store.record(SPACE, "a")).toBe("1");
      await accept(store, put("a", "2", { ifValue: "1" }), put("b", "1", { ifValue: null }));
      await accept(store, put("gone", "1", { ttlMs: 0 }));
      await accept(store, put("gone", "2", { ifValue: null }));
      expect(await store.record(SPACE, "gone")).toBe("2");
    });

    it("expire, and pruning deletes those that have", async () => {
      const store = await open();
      await accept(store, put("past", "1", { ttlMs: 0 }), put("future", "1", { ttlMs: MINUTE }));
      expect(await store.record(SPACE, "past")).toBeUndefined();
      expect(await keysOf(store)).toEqual(["future"]);
      await store.prune(0, 10);
      expect(await keysOf(store)).toEqual(["future"]);
      await accept(store, put("new", "1", { keep: 2 }));
      expect(await keysOf(store)).toEqual(["future", "new"]);
    });

    it("beyond what a space keeps go, the ones put longest ago first", async () => {
      const store = await open();
      await accept(store, put("a", "1"), put("b", "1"), put("c", "1"), put("a", "2"));
      await accept(store, put("d", "1", { keep: 3 }), put("other", "1", { space: "other", keep: 1 }));
      expect(await keysOf(store)).toEqual(["a", "c", "d"]);
      await accept(store, put("e", "1", { keep: 1 }));
      expect(await keysOf(store)).toEqual(["e"]);
    });

    it("are what a list of the newest would be, whatever is written", async () => {
      const store = await open();
      const key = fc.constantFrom("a", "b", "c", "d", "e");
      const keep = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
      const step = fc.oneof(
        { weight: 4, arbitrary: fc.record({ kind: fc.constant("put"), key, keep }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete"), key, keep }) },
      );
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
          const space = `run ${++run}`;
          let expected: string[] = [];
          for (const { kind, key, keep } of steps) {
            expected = expected.filter((known) => known !== key);
            if (kind === "delete") await accept(store, { kind: "record-delete", space, key });
            else {
              await accept(store, put(key, "1", { space, ...(keep === undefined ? undefined : { keep }) }));
              expected = [...expected, key].slice(-(keep ?? steps.length));
            }
          }
          const kept = await store.records(space, { limit: 10 });
          expect(kept.map((record) => record.key)).toEqual(expected.sort());
        }),
        { numRuns: 50 },
      );
    });
  });
}
