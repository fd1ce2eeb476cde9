import { describe, expect, it } from "vitest";
import type { LogEntry } from "../../model/event.ts";
import { describeStore } from "../contract-suite.ts";
import {
  ALICE,
  accept,
  append,
  finished,
  listQuery,
  status,
  statusEvent,
  submit,
  WORKING,
  walk,
} from "../suite/fixtures.ts";
import { createMemoryStore } from "./memory-store.ts";

const clock = { now: () => Date.now(), after: () => () => {} };

describeStore("memory store", { open: async (own = clock) => createMemoryStore({ clock: own }) });

describe("memory store, inside", () => {
  it("does not serialise what nobody reads", async () => {
    const store = createMemoryStore({ clock });
    const write = finished("task");
    const unreadable = {
      get json(): string {
        throw new Error("serialised");
      },
    };
    const entries = write.entries.map((entry) =>
      Object.defineProperties(entry, Object.getOwnPropertyDescriptors(unreadable)),
    );
    await accept(store, { ...write, entries });
    expect(await store.snapshot("task", { history: 10, artifacts: true })).toMatchObject({ number: 2 });
    expect((await store.list(listQuery(ALICE))).tasks).toHaveLength(1);
  });

  it("leaves the writer's arrays alone", async () => {
    const store = createMemoryStore({ clock });
    const write = submit("task");
    const entries: LogEntry[] = [...write.entries];
    await accept(store, { ...write, entries });
    await accept(store, append("task", 1, [statusEvent("task", status(WORKING, 1))]));
    expect(entries).toHaveLength(1);
  });

  it("keeps its order through many changes and removals", async () => {
    const store = createMemoryStore({ clock });
    const numbers = new Map<string, number>();
    for (let index = 0; index < 400; index++) {
      const id = `task ${(index * 37) % 400}`;
      await accept(store, submit(id, [], { contextId: "one" }));
      numbers.set(id, 1);
    }
    const expected: string[] = [];
    let time = 0;
    for (let round = 0; round < 3; round++) {
      for (const [id, number] of numbers) {
        await accept(store, append(id, number, [statusEvent(id, status(WORKING, ++time), "one")]));
        numbers.set(id, number + 1);
      }
    }
    for (const id of numbers.keys()) expected.unshift(id);
    expect(await walk(store, listQuery(ALICE, { limit: 7 }))).toEqual(expected);
    expect(await walk(store, listQuery(ALICE, { limit: 7, contextId: "one", state: WORKING }))).toEqual(expected);
  });
});
