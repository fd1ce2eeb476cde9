import { expect, test } from "vitest";
import type { AgentEvent } from "../agent.ts";
import { agentOf, status } from "../testing/agents.ts";
import { Harness } from "../testing/harness.ts";

const cycle: Record<string, unknown> = {};
cycle.self = cycle;

test.each([
  ["nothing", null],
  ["an empty object", {}],
  ["an artifact without parts", { artifact: { artifactId: "a" } }],
  ["an artifact with no parts", { artifact: { artifactId: "a", parts: [] } }],
  ["a part that is null", { artifact: { parts: [null] } }],
  ["a part that says two things", { artifact: { parts: [{ text: "a", data: 1 }] } }],
  ["text that is no text", { artifact: { parts: [{ text: 5 }] } }],
  ["data that is no JSON", { artifact: { parts: [{ data: 10n }] } }],
  ["data without an end", { artifact: { parts: [{ data: cycle }] } }],
  ["an id that is no text", { artifact: { artifactId: 5, parts: [{ text: "a" }] } }],
  ["a state nobody knows", { status: "NONSENSE" }],
  ["a state that is not the agent's to say", { status: "TASK_STATE_SUBMITTED" }],
  ["metadata that is a list", { status: "TASK_STATE_WORKING", metadata: [] }],
])("%s fails the task of the agent that yields it, and no other", async (_name, event) => {
  const harness = await Harness.start({
    agents: {
      bad: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        yield event as AgentEvent;
      }),
      good: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
      }),
    },
  });
  const [bad, good] = await Promise.all([harness.task("x", { agent: "bad" }), harness.task("x", { agent: "good" })]);
  expect([bad.status.state, good.status.state]).toEqual(["TASK_STATE_FAILED", "TASK_STATE_COMPLETED"]);
});

test("what an agent does to its own objects afterwards does not reach the log", async () => {
  const data = { count: 1 };
  const harness = await Harness.start({
    agent: agentOf(async function* () {
      yield { artifact: { artifactId: "a", parts: [{ data }] } };
      data.count = 2;
    }),
  });
  expect((await harness.task("x")).artifacts?.[0]?.parts).toEqual([{ data: { count: 1 } }]);
});

test("an agent cannot change what it was told", async () => {
  const harness = await Harness.start({
    agent: agentOf(async function* (turn) {
      yield status("TASK_STATE_WORKING");
      (turn.message.parts[0] as { text: string }).text = "something else";
    }),
  });
  const task = await harness.task("hello");
  expect(task.status.state).toBe("TASK_STATE_FAILED");
  expect(task.history?.[0]?.parts).toEqual([{ text: "hello" }]);
});

test("an agent is given its task's names, not the engine's own object", async () => {
  let given: unknown;
  const harness = await Harness.start({
    agent: agentOf(async function* (turn) {
      given = turn.task;
      yield status("TASK_STATE_WORKING");
    }),
  });
  const { id, contextId } = await harness.task("hello");
  expect(given).toEqual({ id, contextId });
});
