import { describe, expect, test } from "vitest";
import type { TaskStore } from "../store/contract.ts";
import { agentOf, echo, status } from "./testing/agents.ts";
import { FakeClock, settle } from "./testing/fake-clock.ts";
import { createSharedMemory, Harness } from "./testing/harness.ts";
import { overrideStore } from "./testing/stores.ts";

const MINUTE = 60_000;

describe.each([-10, 0, 10])("with a store whose clock is %i minutes ahead", (minutes) => {
  const shared = () => createSharedMemory(new FakeClock(), minutes * MINUTE);

  test("keys are forgotten after their time, though tasks are kept forever", async () => {
    const harness = await Harness.start({
      agent: echo(),
      shared: shared(),
      times: { idempotencyMs: 5 * MINUTE, housekeepingMs: MINUTE, compactAfterMs: 100 * MINUTE },
    });
    const first = await harness.task("hello", { key: "k", messageId: "m" });
    await harness.clock.advance(4 * MINUTE);
    expect((await harness.task("hello", { key: "k", messageId: "m" })).id).toBe(first.id);
    await harness.clock.advance(3 * MINUTE);
    const second = await harness.task("hello", { key: "k", messageId: "m" });
    expect(second.id).not.toBe(first.id);
    expect((await harness.get(first.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("tasks that ended long ago are deleted where that is wanted", async () => {
    const harness = await Harness.start({
      agent: echo(),
      shared: shared(),
      times: { pruneAfterMs: 5 * MINUTE, housekeepingMs: MINUTE },
    });
    const { id } = await harness.task("hello");
    await harness.clock.advance(4 * MINUTE);
    expect((await harness.get(id)).id).toBe(id);
    await harness.clock.advance(3 * MINUTE);
    await expect(harness.get(id)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  test("much is deleted in small portions, with time between them", async () => {
    const portions: [at: number, max: number][] = [];
    const wrap = (inner: TaskStore) =>
      overrideStore(inner, {
        prune: (ageMs, max) => {
          portions.push([harness.clock.now(), max]);
          return inner.prune(ageMs, max);
        },
      });
    const times = { pruneAfterMs: 5 * MINUTE, housekeepingMs: 10 * MINUTE };
    const harness = await Harness.start({ agent: echo(), shared: shared(), wrap, times });
    await Promise.all(Array.from({ length: 100 }, () => harness.task("hello")));
    await harness.clock.advance(11 * MINUTE);
    expect((await harness.memory.stats()).tasks).toBe(0);
    expect(portions.length).toBeGreaterThanOrEqual(5);
    expect(new Set(portions.map(([at]) => at)).size).toBe(portions.length);
    expect(Math.max(...portions.map(([, max]) => max))).toBeLessThanOrEqual(20);
  });

  test("what was deleted is given back in portions, with time between them, until there is no more", async () => {
    const portions: number[] = [];
    const wrap = (inner: TaskStore) =>
      overrideStore(inner, {
        shrink: async () => {
          portions.push(harness.clock.now());
          return portions.length < 4;
        },
      });
    const harness = await Harness.start({ agent: echo(), shared: shared(), wrap, times: { housekeepingMs: MINUTE } });
    await harness.clock.advance(MINUTE + MINUTE / 2);
    expect(portions).toHaveLength(4);
    expect(new Set(portions).size).toBe(4);
  });

  test("a task is taken over when its node has been silent for the time of its lease, and not before", async () => {
    const agent = agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await new Promise(() => {});
    });
    const first = await Harness.start({ agent, shared: shared() });
    const { id } = await first.begin("hello");
    const second = await Harness.start({ agent, after: first });
    await first.clock.advance(MINUTE);
    expect((await second.get(id)).status.state).toBe("TASK_STATE_WORKING");
    first.crash();
    await second.clock.advance(MINUTE);
    await settle(20);
    expect((await second.get(id)).status.state).toBe("TASK_STATE_FAILED");
  });
});
