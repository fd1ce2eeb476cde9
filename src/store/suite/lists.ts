import { describe, expect, it } from "vitest";
import { fold } from "../../model/fold.ts";
import { COUNT_BOUND, type ListPosition, type TaskStore } from "../contract.ts";
import {
  accept,
  append,
  COMPLETED,
  EPOCH,
  EVERYTHING,
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
      expect((await store().list(listQuery(scope))).total).toBe(1);
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
            expect((await store().list(query)).total).toBe(matching.length);
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
      expect(await totals()).toEqual([2, 2, 0]);
      await accept(store(), append(first, 2, [statusEvent(first, status(WORKING, 2))]));
      expect(await totals()).toEqual([2, 2, 0]);
      await accept(store(), append(first, 3, [statusEvent(first, status(COMPLETED, 3))]), {
        kind: "discard",
        id: second,
        fence: 1,
        reply: message("plain"),
      });
      expect(await totals()).toEqual([1, 0, 1]);
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
        const query = listQuery(scope, { limit: 4, characters: 5_000, ...(after === undefined ? {} : { after }) });
        const page = await store().list(query);
        expect(page.total).toBe(lengths.length);
        pages.push(page.tasks.length);
        ids.push(...page.tasks.map(({ id }) => id));
        after = page.next;
      } while (after !== undefined);
      expect(pages).toEqual([1, 1, 4]);
      expect(ids).toEqual(written.map(({ id }) => id));
    });

    it("stops counting what no counter covers", async () => {
      const scope = uniqueScope();
      const contextId = uniqueId("context");
      const count = COUNT_BOUND + 5;
      for (let done = 0; done < count; done += 1000) {
        const writes = Array.from({ length: Math.min(1000, count - done) }, () =>
          finished(uniqueId(), done, { ...scope, contextId }),
        );
        await accept(store(), ...writes);
      }
      expect((await store().list(listQuery(scope, { contextId }))).total).toBe(COUNT_BOUND);
      expect((await store().list(listQuery(scope, { since: EPOCH }))).total).toBe(COUNT_BOUND);
      expect((await store().list(listQuery(scope, { state: COMPLETED }))).total).toBe(count);
      expect((await store().list(listQuery(scope))).total).toBe(count);
    });
  });
}
