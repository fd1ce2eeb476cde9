import { describe, expect, it } from "vitest";
import type { LogEntry } from "../../model/event.ts";
import type { Clock } from "../../model/ports.ts";
import type { TaskStore } from "../contract.ts";
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
import { describeLists } from "../suite/lists.ts";
import { describeRetention, describeUsage } from "../suite/retention.ts";
import { createMemoryStore } from "./memory-store.ts";

const clock: Clock = { now: () => Date.now(), after: () => () => {} };

describeStore("memory store", { open: async (own = clock) => createMemoryStore({ clock: own }) });

describe("a store whose counters lag", () => {
  /** Each question is answered with what was true when it was asked the last time. */
  function withLag(store: TaskStore): TaskStore {
    const known = new Map<string, unknown>();
    const late = <T>(question: string, answer: T, first: T): T => {
      const earlier = (known.get(question) ?? first) as T;
      known.set(question, answer);
      return earlier;
    };
    return {
      ...store,
      list: async (query) => {
        const page = await store.list(query);
        return { ...page, total: late(JSON.stringify({ ...query, limit: 0, after: 0 }), page.total, 0) };
      },
      storedBytes: async (owner) => late(owner, await store.storedBytes(owner), 0),
      stats: async () => late("stats", await store.stats(), await createMemoryStore({ clock }).stats()),
    };
  }
  const open = async (own = clock) => withLag(createMemoryStore({ clock: own }));
  const shared = withLag(createMemoryStore({ clock }));

  describeLists(() => shared);
  describeRetention(open);
  describeUsage(open);
});

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
