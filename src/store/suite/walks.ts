import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TaskState } from "../../model/state.ts";
import type { ListPage, ListQuery, Scope, TaskStore } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  drain,
  EPOCH,
  listQuery,
  message,
  status,
  statusEvent,
  submit,
  uniqueId,
  uniqueScope,
  WORKING,
} from "./fixtures.ts";

const CONTEXTS = ["context 0", "context 1"];

interface Known {
  readonly id: string;
  readonly contextId: string;
  number: number;
  state: TaskState;
  time: number;
}

/** Tasks of one scope that come, change and go while somebody walks through their list. */
class Town {
  readonly scope: Scope = uniqueScope();
  readonly store: TaskStore;
  readonly tasks: Known[] = [];
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

  #pick(which: number): Known | undefined {
    const open = this.tasks.filter((task) => task.state === WORKING);
    return open[which % Math.max(open.length, 1)];
  }
}

const time = fc.nat(12);
const state = fc.constantFrom<TaskState[]>(WORKING, WORKING, COMPLETED);
const happening = fc.oneof(
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
      const town = new Town(store());
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
        fc.asyncProperty(
          arrivals,
          fc.array(happening, { maxLength: 30 }),
          filter,
          async (tasks, happenings, filters) => {
            const town = new Town(store());
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
          },
        ),
        { numRuns: 60 },
      );
    });
  });
}

/** First page, then the happenings with further pages among them, then the pages that are left. */
async function walkWhile(
  town: Town,
  query: ListQuery,
  happenings: readonly (typeof happening extends fc.Arbitrary<infer T> ? T : never)[],
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
    else if (event.kind === "compact") await drain(() => town.store.compact(EPOCH + 1_000_000, 1000));
    else await turn(event.limit);
  }
  while (page.next !== undefined) await turn(query.limit);
  return met;
}
