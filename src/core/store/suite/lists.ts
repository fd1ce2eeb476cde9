import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fold } from "../../model/fold.ts";
import type { TaskState } from "../../model/task.ts";
import {
  type ListPage,
  type ListPosition,
  type ListQuery,
  MAX_COUNTED,
  type Scope,
  type TaskStore,
} from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  drain,
  EPOCH,
  EVERYTHING,
  expectCounter,
  finished,
  listQuery,
  message,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
  walk,
} from "./fixtures.ts";

const CONTEXTS = ["context 0", "context 1"];

interface KnownTask {
  readonly id: string;
  readonly contextId: string;
  number: number;
  state: TaskState;
  time: number;
}

/** Tasks of one scope that come, change and go while somebody walks through their list. */
class ChangingScope {
  readonly scope: Scope = uniqueScope();
  readonly store: TaskStore;
  readonly tasks: KnownTask[] = [];
  readonly touched = new Set<string>();

  constructor(store: TaskStore) {
    this.store = store;
  }

  async arrive(time: number, context: number, state: TaskState): Promise<void> {
    const contextId = CONTEXTS[context % CONTEXTS.length] as string;
    const id = uniqueId(`${(context * 7919) % 100}`);
    const events = [statusEvent(id, status(state, time), contextId)];
    await accept(this.store, submit(id, events, { ...this.scope, contextId, node: "n" }));
    this.tasks.push({ id, contextId, number: 2, state, time });
  }

  async change(which: number, time: number, state: TaskState): Promise<void> {
    const task = this.#pick(which);
    if (task === undefined) return;
    await accept(this.store, append(task.id, task.number, [statusEvent(task.id, status(state, time), task.contextId)]));
    Object.assign(task, { number: task.number + 1, state, time });
    this.touched.add(task.id);
  }

  async leave(which: number): Promise<void> {
    const task = this.#pick(which);
    if (task === undefined) return;
    await accept(this.store, { kind: "discard", id: task.id, fence: 1, reply: message("plain") });
    this.tasks.splice(this.tasks.indexOf(task), 1);
  }

  #pick(which: number): KnownTask | undefined {
    const open = this.tasks.filter((task) => task.state === WORKING);
    return open[which % Math.max(open.length, 1)];
  }
}

const time = fc.nat(12);
const state = fc.constantFrom<TaskState[]>(WORKING, WORKING, COMPLETED);
const change = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("change" as const), which: fc.nat(50), time, state }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("arrive" as const), context: fc.nat(50), time, state }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("compact" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("page" as const), limit: fc.integer({ min: 1, max: 3 }) }) },
);
const filter = fc.record(
  { contextId: fc.constantFrom(...CONTEXTS), state: fc.constantFrom<TaskState[]>(WORKING, COMPLETED) },
  { requiredKeys: [] },
);
const arrivals = fc.array(fc.record({ time, context: fc.nat(50), state }), { maxLength: 12 });

export function describeWalks(store: () => TaskStore): void {
  describe("a walk through the list while tasks change", () => {
    it("meets what moves ahead of it once and in its old place, and not what came later", async () => {
      const town = new ChangingScope(store());
      for (const at of [1, 2, 3, 4]) await town.arrive(at, 0, WORKING);
      const [one, two, three, four] = town.tasks.map(({ id }) => id);
      const query = listQuery(town.scope, { limit: 1 });
      const first = await store().list(query);
      expect(first.tasks.map(({ id }) => id)).toEqual([four]);
      await town.change(1, 100, COMPLETED);
      await town.change(0, 0, WORKING);
      await town.change(0, 101, WORKING);
      await town.arrive(0, 0, WORKING);
      await town.change(3, 102, WORKING);
      const rest: string[] = [];
      for (let page: ListPage = first; page.next !== undefined; ) {
        page = await store().list({ ...query, after: page.next });
        rest.push(...page.tasks.map(({ id }) => id));
      }
      expect(rest).toEqual([three, two, one]);
    });

    it("meets every task that was there at the beginning exactly once, and no other", async () => {
      await fc.assert(
        fc.asyncProperty(arrivals, fc.array(change, { maxLength: 30 }), filter, async (tasks, happenings, filters) => {
          const town = new ChangingScope(store());
          for (const task of tasks) await town.arrive(task.time, task.context, task.state);
          const query = listQuery(town.scope, { limit: 2, ...filters });
          const atStart = new Map(town.tasks.map((task) => [task.id, { ...task }]));
          const met = await walkWhile(town, query, happenings);
          expect(new Set(met).size).toBe(met.length);
          const places = met.map((id) => atStart.get(id)?.time ?? Number.NaN);
          expect(places).toEqual(places.toSorted((left, right) => right - left));
          for (const { id, contextId, state: now } of town.tasks) {
            const before = atStart.get(id);
            if (before === undefined) continue;
            const inContext = query.contextId === undefined || query.contextId === contextId;
            const always = query.state === undefined || (before.state === query.state && now === query.state);
            const never = query.state !== undefined && before.state !== query.state && now !== query.state;
            if (inContext && always) expect(met).toContain(id);
            if (!inContext || never) expect(met).not.toContain(id);
          }
        }),
        { numRuns: 60 },
      );
    });
  });
}

/** First page, then the happenings with further pages among them, then the pages that are left. */
async function walkWhile(
  town: ChangingScope,
  query: ListQuery,
  happenings: readonly (typeof change extends fc.Arbitrary<infer T> ? T : never)[],
): Promise<string[]> {
  const met: string[] = [];
  let page = await town.store.list(query);
  met.push(...page.tasks.map(({ id }) => id));
  async function turn(limit: number): Promise<void> {
    if (page.next === undefined) return;
    page = await town.store.list({ ...query, limit, after: page.next });
    for (const task of page.tasks) if (query.state !== undefined) expect(task.status.state).toBe(query.state);
    met.push(...page.tasks.map(({ id }) => id));
  }
  for (const event of happenings) {
    if (event.kind === "change") await town.change(event.which, event.time, event.state);
    else if (event.kind === "arrive") await town.arrive(event.time, event.context, event.state);
    else if (event.kind === "leave") await town.leave(event.which);
    else if (event.kind === "compact") await drain(() => town.store.compact(0, 1000));
    else await turn(event.limit);
  }
  while (page.next !== undefined) await turn(query.limit);
  return met;
}

export function describeLists(store: () => TaskStore): void {
  describe("list", () => {
    it("is empty for a scope without tasks", async () => {
      expect(await store().list(listQuery(uniqueScope()))).toEqual({ tasks: [], total: 0 });
    });

    it("orders by status time, newest first, in pages of any size", async () => {
      const scope = uniqueScope();
      const times = [5, 3, 9, 1, 7, 7, 7, 2, 8, 4, 6];
      const tasks = times.map((time) => ({ id: uniqueId(), time }));
      await accept(store(), ...tasks.map(({ id, time }) => finished(id, time, scope)));
      const expected = times.toSorted((left, right) => right - left);
      for (let limit = 1; limit <= 12; limit++) {
        const ids = await walk(store(), listQuery(scope, { limit }));
        expect(ids.map((id) => tasks.find((task) => task.id === id)?.time)).toEqual(expected);
        expect(new Set(ids).size).toBe(times.length);
      }
    });

    it("has a next page exactly if there is more", async () => {
      const scope = uniqueScope();
      await accept(store(), ...[1, 2, 3].map((time) => finished(uniqueId(), time, scope)));
      expect(await store().list(listQuery(scope, { limit: 3 }))).not.toHaveProperty("next");
      expect(await store().list(listQuery(scope, { limit: 4 }))).not.toHaveProperty("next");
      const { next } = await store().list(listQuery(scope, { limit: 2 }));
      expect(next).toMatchObject({ timestamp: EPOCH + 2 });
      expect(await store().list(listQuery(scope, { limit: 2, ...(next && { after: next }) }))).not.toHaveProperty(
        "next",
      );
    });

    it("shows nobody else's tasks", async () => {
      const scope = uniqueScope();
      const others = [
        { ...scope, owner: "bob" },
        { ...scope, agent: "other" },
        { ...scope, tenant: `${scope.tenant}x` },
      ];
      const id = uniqueId();
      await accept(store(), finished(id, 1, scope), ...others.map((other) => finished(uniqueId(), 1, other)));
      expect(await walk(store(), listQuery(scope))).toEqual([id]);
      await expectCounter(async () => (await store().list(listQuery(scope))).total).toBe(1);
    });

    it("filters by context, state and time in every combination, with matching totals", async () => {
      const scope = uniqueScope();
      const tasks = Array.from({ length: 24 }, (_, index) => ({
        id: uniqueId(),
        contextId: `context ${index % 3}`,
        state: index % 2 === 0 ? WORKING : COMPLETED,
        time: index % 8,
      })) satisfies { state: "TASK_STATE_WORKING" | "TASK_STATE_COMPLETED"; [key: string]: unknown }[];
      await accept(
        store(),
        ...tasks.map(({ id, contextId, state, time }) =>
          submit(id, [statusEvent(id, status(state as typeof WORKING, time), contextId)], { ...scope, contextId }),
        ),
      );
      for (const contextId of [undefined, "context 1", "unknown"]) {
        for (const state of [undefined, WORKING, COMPLETED, "TASK_STATE_FAILED"] as const) {
          for (const since of [undefined, 0, 4, 9]) {
            const matching = tasks
              .filter((task) => contextId === undefined || task.contextId === contextId)
              .filter((task) => state === undefined || task.state === state)
              .filter((task) => since === undefined || task.time >= since);
            const query = listQuery(scope, {
              limit: 3,
              ...(contextId === undefined ? undefined : { contextId }),
              ...(state === undefined ? undefined : { state }),
              ...(since === undefined ? undefined : { since: EPOCH + since }),
            });
            expect((await walk(store(), query)).toSorted()).toEqual(matching.map(({ id }) => id).toSorted());
            await expectCounter(async () => (await store().list(query)).total).toBe(matching.length);
          }
        }
      }
    });

    it("counts what changes", async () => {
      const scope = uniqueScope();
      const [first, second] = [uniqueId(), uniqueId()];
      const totals = async () => {
        const counts: number[] = [];
        for (const state of [undefined, WORKING, COMPLETED] as const) {
          counts.push((await store().list(listQuery(scope, state === undefined ? {} : { state }))).total);
        }
        return counts;
      };
      await accept(store(), submit(first, [statusEvent(first, status(WORKING, 1))], { ...scope, node: "n" }));
      await accept(store(), submit(second, [statusEvent(second, status(WORKING, 1))], { ...scope, node: "n" }));
      await expectCounter(totals).toEqual([2, 2, 0]);
      await accept(store(), append(first, 2, [statusEvent(first, status(WORKING, 2))]));
      await expectCounter(totals).toEqual([2, 2, 0]);
      await accept(store(), append(first, 3, [statusEvent(first, status(COMPLETED, 3))]), {
        kind: "discard",
        id: second,
        fence: 1,
        reply: message("plain"),
      });
      await expectCounter(totals).toEqual([1, 0, 1]);
    });

    it("shows the newest of many without counting or continuing, if only the first page is wanted", async () => {
      const scope = uniqueScope();
      const contextId = uniqueId("context");
      const ids = [1, 2, 3].map(() => uniqueId());
      await accept(store(), ...ids.map((id, time) => finished(id, time, { ...scope, contextId })));
      const newest = (limit: number) => store().list(listQuery(scope, { contextId, limit, firstPageOnly: true }));
      const [first, second, third] = ids.toReversed();
      const page = await newest(1);
      expect(page.tasks).toMatchObject([{ id: first }]);
      expect(page).not.toHaveProperty("next");
      expect((await newest(5)).tasks.map(({ id }) => id)).toEqual([first, second, third]);
    });

    it("shows as much of each task as asked", async () => {
      const scope = uniqueScope();
      const id = uniqueId();
      const write = submit(id, [statusEvent(id, status(WORKING, 1, "hm")), statusEvent(id, status(WORKING, 2))], scope);
      await accept(store(), write);
      const task = fold(write.entries).toTask();
      expect((await store().list(listQuery(scope, EVERYTHING))).tasks).toEqual([task]);
      const { history: _, ...bare } = task;
      expect((await store().list(listQuery(scope))).tasks).toEqual([bare]);
    });

    it("ends a page where it would be too long, but for its first task", async () => {
      const scope = uniqueScope();
      const lengths = [10, 9_000, 10, 400, 400, 400];
      const written = lengths.map((length, time) => {
        const id = uniqueId();
        return submit(id, [statusEvent(id, status(WORKING, 9 - time, "x".repeat(length)))], scope);
      });
      await accept(store(), ...written);
      const pages: number[] = [];
      const ids: string[] = [];
      let after: ListPosition | undefined;
      do {
        const query = listQuery(scope, { limit: 4, maxCharacters: 5_000, ...(after === undefined ? {} : { after }) });
        const page = await store().list(query);
        pages.push(page.tasks.length);
        ids.push(...page.tasks.map(({ id }) => id));
        after = page.next;
      } while (after !== undefined);
      expect(pages).toEqual([1, 1, 4]);
      await expectCounter(async () => (await store().list(listQuery(scope, { limit: 1 }))).total).toBe(lengths.length);
      expect(ids).toEqual(written.map(({ id }) => id));
    });

    it("stops counting what no counter covers", async () => {
      const scope = uniqueScope();
      const contextId = uniqueId("context");
      const count = MAX_COUNTED + 5;
      for (let done = 0; done < count; done += 1000) {
        const writes = Array.from({ length: Math.min(1000, count - done) }, () =>
          finished(uniqueId(), done, { ...scope, contextId }),
        );
        await accept(store(), ...writes);
      }
      await expectCounter(async () => (await store().list(listQuery(scope, { contextId }))).total).toBe(MAX_COUNTED);
      await expectCounter(async () => (await store().list(listQuery(scope, { since: EPOCH }))).total).toBe(MAX_COUNTED);
      await expectCounter(async () => (await store().list(listQuery(scope, { state: COMPLETED }))).total).toBe(count);
      await expectCounter(async () => (await store().list(listQuery(scope))).total).toBe(count);
    });
  });
}
