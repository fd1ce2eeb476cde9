import { expect, test } from "vitest";
import { isTerminal } from "../../model/task.ts";
import type { AgentEvent } from "../agent.ts";
import { agentOf, chunk, inputText, status } from "../testing/agents.ts";
import { createSharedMemory, createSharedSqlite, Harness } from "../testing/harness.ts";

const endless = agentOf(async function* () {
  yield chunk("a", "x", false);
  for (;;) yield chunk("a", "xxxxxxxxxx");
});

test("an agent that writes without end fails at the limit, and says why", async () => {
  const harness = await Harness.start({ agent: endless, limits: { task: 100_000 } });
  const task = await harness.task("go");
  expect(task.status.state).toBe("TASK_STATE_FAILED");
  expect(task.status.message?.parts).toEqual([{ text: "The agent wrote more than 100000 bytes." }]);
  const written = task.artifacts?.[0]?.parts.map((part) => ("text" in part ? part.text : "")).join("") ?? "";
  expect(written.length).toBeGreaterThan(1_000);
  expect(written.length).toBeLessThan(10_000);
});

const LONG = "x".repeat(10_000);
const text = [{ text: "" }];

test.each<[string, (index: number) => AgentEvent, number]>([
  ["metadata of artifacts", (i) => ({ artifact: { artifactId: `${i}`, parts: text, metadata: { x: LONG } } }), 10],
  ["metadata of parts", () => ({ artifact: { artifactId: "a", parts: [{ text: "", metadata: { x: LONG } }] } }), 10],
  ["metadata of events", () => ({ artifact: { artifactId: "a", parts: text }, metadata: { x: LONG } }), 10],
  ["names", () => ({ artifact: { artifactId: "a", name: LONG, parts: text }, append: true }), 10],
  ["descriptions", () => ({ artifact: { artifactId: "a", description: LONG, parts: text } }), 10],
  ["ids", (index) => ({ artifact: { artifactId: `${index}${LONG}`, parts: text } }), 10],
  ["file names", () => ({ artifact: { artifactId: "a", parts: [{ text: "", filename: LONG }] } }), 10],
  ["extensions", () => ({ artifact: { artifactId: "a", parts: text, extensions: [LONG] } }), 10],
  ["metadata of statuses", () => ({ status: "TASK_STATE_WORKING", metadata: { x: LONG } }), 10],
  ["small values", () => ({ artifact: { artifactId: "a", parts: [{ data: Array(100).fill({}) }] } }), 16],
  ["short statuses", () => status("TASK_STATE_WORKING", "x"), 200],
  ["statuses without a message", () => status("TASK_STATE_WORKING"), 400],
  ["small artifacts", (index) => ({ artifact: { artifactId: `${index}`, parts: text } }), 200],
])("%s without end are counted, too", async (_name, toEvent, most) => {
  let events = 0;
  const agent = agentOf(async function* () {
    for (;;) yield toEvent(events++);
  });
  const harness = await Harness.start({ agent, limits: { task: 100_000 } });
  const task = await harness.task("go");
  expect(task.status.message?.parts).toEqual([{ text: "The agent wrote more than 100000 bytes." }]);
  expect(events).toBeLessThanOrEqual(most);
});

test.each([
  ["memory", async () => createSharedMemory()],
  ["SQLite", () => createSharedSqlite()],
])("what the turns before have written counts in %s, also after a restart", async (_name, createShared) => {
  const agent = agentOf(async function* () {
    yield status("TASK_STATE_INPUT_REQUIRED", "x".repeat(30_000));
  });
  const limits = { task: 100_000 };
  let harness = await Harness.start({ agent, limits, shared: await createShared() });
  const { id } = await harness.task("go");
  const states: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    harness = await Harness.start({ agent, limits, after: harness });
    const { status: last } = await harness.task("go", { taskId: id });
    states.push(last.state);
    if (isTerminal(last.state)) break;
  }
  expect(states.at(-1)).toBe("TASK_STATE_FAILED");
  expect(states.length).toBeGreaterThan(1);
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

test("where all tasks together are too large, a large one fails and a small one continues", async () => {
  const agent = agentOf(async function* (turn) {
    for (let index = 0; index < Number(inputText(turn)); index++) {
      yield chunk(`${index}`, "x".repeat(1_000), false);
    }
  });
  const harness = await Harness.start({ agent, liveBytes: 100_000 });
  const [large, other, small] = await Promise.all(["1000", "1000", "5"].map((count) => harness.task(count)));
  const reason = "The unfinished tasks of this server take up too much memory, and this is one of the largest.";
  for (const task of [large, other]) {
    expect(task?.status).toMatchObject({ state: "TASK_STATE_FAILED", message: { parts: [{ text: reason }] } });
  }
  expect(small?.status.state).toBe("TASK_STATE_COMPLETED");
  expect((await harness.task("20")).status.state).toBe("TASK_STATE_COMPLETED");
});
