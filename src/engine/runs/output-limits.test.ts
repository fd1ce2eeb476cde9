import { expect, test } from "vitest";
import { agentOf, chunk, status } from "../testing/agents.ts";
import { Harness } from "../testing/harness.ts";

const endless = agentOf(async function* () {
  yield chunk("a", "x", false);
  for (;;) yield chunk("a", "xxxxxxxxxx");
});

test("an agent that writes without end fails at the limit, and says why", async () => {
  const harness = await Harness.start({ agent: endless, limits: { task: 1_000 } });
  const task = await harness.task("go");
  expect(task.status.state).toBe("TASK_STATE_FAILED");
  expect(task.status.message?.parts).toEqual([{ text: "The agent wrote more than 1000 characters." }]);
  const written = task.artifacts?.[0]?.parts.map((part) => ("text" in part ? part.text : "")).join("") ?? "";
  expect(written.length).toBeGreaterThan(900);
  expect(written.length).toBeLessThanOrEqual(1_000);
});

test("a part that is too long fails the task instead of filling the store", async () => {
  const agent = agentOf(async function* () {
    yield status("TASK_STATE_WORKING");
    yield chunk("a", "x".repeat(2_000), false);
  });
  const harness = await Harness.start({ agent, limits: { part: 1_000 } });
  const task = await harness.task("go");
  expect(task.status.message?.parts).toEqual([{ text: "The agent made a part of more than 1000 characters." }]);
  expect(task.artifacts).toBeUndefined();
});

test("a message with a part that is too long is refused and nothing is stored", async () => {
  const harness = await Harness.start({ agent: endless, limits: { part: 10 } });
  await expect(harness.send("x".repeat(11))).rejects.toMatchObject({ code: "INVALID_PARAMS" });
  expect((await harness.list()).totalSize).toBe(0);
});

test.each(["messageId", "contextId"] as const)(
  "a %s that is too long is refused: it would be repeated in every event",
  async (name) => {
    const harness = await Harness.start({ agent: endless });
    const message = { messageId: "m", role: "ROLE_USER" as const, parts: [{ text: "x" }], [name]: "c".repeat(1_025) };
    const call = { caller: { owner: "o", authenticated: false }, tenant: "", extensions: [], dialect: "test" };
    await expect(harness.engine.agent("agent").dispatch({ kind: "send", message }, call)).rejects.toMatchObject({
      code: "INVALID_PARAMS",
      violations: [{ field: name }],
    });
    const elsewhere = harness.engine
      .agent("agent")
      .dispatch(
        { kind: "send", message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }] } },
        { ...call, tenant: "t".repeat(1_025) },
      );
    await expect(elsewhere).rejects.toMatchObject({ violations: [{ field: "tenant" }] });
  },
);
