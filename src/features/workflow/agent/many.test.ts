import { expect, it } from "vitest";
import { agentOf, chunk, createGate, echo, inputText } from "../../../core/engine/testing/agents.ts";
import { createSharedMemory, createSharedSqlite } from "../../../core/engine/testing/harness.ts";
import { logViolations } from "../../../core/engine/testing/log-invariants.ts";
import { progressOf, startWorld, textsOf, workflowOf } from "./testing/workflows.ts";

it.each([
  [1_000, "in memory", createSharedMemory],
  [300, "in SQLite", createSharedSqlite],
])("%i runs that wait at the same time all end with what is theirs, %s", async (count, _name, createShared) => {
  const gate = createGate();
  const full = createGate();
  let waiting = 0;
  const harness = await startWorld({
    shared: await createShared(),
    workflow: workflowOf(
      {
        before: { agent: "echo" },
        wait: { needs: ["before"], input: "${steps.before.text}" },
        after: { agent: "echo", needs: ["wait"], input: "${steps.wait.text}, ${input.text}" },
      },
      ["wait", "after"],
    ),
    agents: {
      echo: echo(),
      wait: agentOf(async function* (turn) {
        if (++waiting === count) full.open();
        await gate.pass();
        yield chunk("text", `waited for ${inputText(turn)}`, false);
      }),
    },
  });
  const running = Array.from({ length: count }, (_, index) => harness.task(`run ${index}`));
  await full.pass();
  gate.open();
  const tasks = await Promise.all(running);
  expect(waiting).toBe(count);
  expect(tasks.map(textsOf)).toEqual(
    tasks.map((_, index) => ({ wait: `waited for run ${index}`, after: `waited for run ${index}, run ${index}` })),
  );
  const steps = ["before", "wait", "after"].flatMap((step) => [`${step} started`, `${step} completed`]);
  for (const { id } of tasks) {
    const log = await harness.log(id);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(progressOf(log)).toEqual(steps);
  }
  // Of each run its own task and those of its steps, and no other.
  expect((await harness.memory.stats()).tasks).toBe(count * 4);
});

it("a foreach of 2,000 items returns them in their order", async () => {
  const items = Array.from({ length: 2_000 }, (_, index) => `item ${index}`);
  const harness = await startWorld({
    workflow: workflowOf({ each: { agent: "echo", foreach: "${input.data}", input: "${index}: ${item}" } }),
    agents: { echo: echo() },
  });
  const task = await harness.task("", { parts: [{ data: items }] });
  expect(textsOf(task)).toEqual({ each: items.map((item, index) => `${index}: ${item}`).join("\n") });
});

it("a chain of 200 steps hands everything on", async () => {
  const names = Array.from({ length: 200 }, (_, index) => `s${index}`);
  const steps = names.map((name, index) => {
    const before = names[index - 1];
    return [name, before === undefined ? {} : { needs: [before], input: `\${steps.${before}.text}.` }] as const;
  });
  const harness = await startWorld({
    workflow: workflowOf(Object.fromEntries(steps.map(([name, step]) => [name, { agent: "echo", ...step }]))),
    agents: { echo: echo() },
  });
  const task = await harness.task("x");
  expect(textsOf(task)).toEqual({ s199: `x${".".repeat(199)}` });
});
