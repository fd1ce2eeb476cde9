import { expect, test } from "vitest";
import { echo } from "./testing/agents.ts";
import { Harness } from "./testing/harness.ts";

const MINUTE = 60_000;

test("keys are forgotten after their time, though tasks are kept for ever", async () => {
  const harness = await Harness.start({
    agent: echo(),
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
  const harness = await Harness.start({ agent: echo(), times: { pruneAfterMs: 5 * MINUTE, housekeepingMs: MINUTE } });
  const { id } = await harness.task("hello");
  await harness.clock.advance(4 * MINUTE);
  expect((await harness.get(id)).id).toBe(id);
  await harness.clock.advance(3 * MINUTE);
  await expect(harness.get(id)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
});
