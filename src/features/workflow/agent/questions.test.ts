import { describe, expect, it } from "vitest";
import { toStream } from "../../../core/agents/child-task.ts";
import type { CallableAgent } from "../../../core/agents/directory.ts";
import type { Agent, Turn } from "../../../core/engine/agent.ts";
import { aborted, agentOf, chunk, createGate, inputText, status } from "../../../core/engine/testing/agents.ts";
import { promptly, settle } from "../../../core/engine/testing/fake-clock.ts";
import { logViolations } from "../../../core/engine/testing/log-invariants.ts";
import type { Operation } from "../../../core/model/operation.ts";
import type { TaskState } from "../../../core/model/task.ts";
import { progressOf, startWorld, statusTextOf, stepsIn, textsOf, workflowOf } from "./testing/workflows.ts";

/** Asks for its name and answers with it. */
const asking = (question: string, turns: Turn[] = []): Agent =>
  agentOf(async function* (turn) {
    turns.push(turn);
    if (turn.history.length === 0) yield status("TASK_STATE_INPUT_REQUIRED", question);
    else yield chunk("text", `${question}${inputText(turn)}`, false);
  });

const wrapping = (name: string): Agent =>
  agentOf(async function* (turn) {
    yield chunk("text", `${name}(${inputText(turn)})`, false);
  });

describe("a question of a step", () => {
  it("becomes that of the run, and the answer goes to the step alone", async () => {
    const turns: Turn[] = [];
    const harness = await startWorld({
      workflow: workflowOf(
        { before: {}, a: { needs: ["before"] }, b: { needs: ["a"], input: "${steps.a.text} ${input.text}" } },
        ["before", "b"],
      ),
      agents: { before: wrapping("before"), a: asking("Who?", turns), b: wrapping("b") },
    });
    const asked = await harness.task("x");
    expect(asked.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Who?" }] },
    });
    const log = await harness.log(asked.id);
    expect(stepsIn(log).at(-1)).toEqual({
      step: "a",
      state: "input-required",
      agent: "a",
      dialect: "local",
      task: turns[0]?.task.id,
      attempt: 1,
    });
    const task = await harness.task("me", { taskId: asked.id });
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textsOf(task)).toEqual({ before: "before(x)", b: "b(Who?me x)" });
    expect(turns.map((turn) => [turn.task.id, inputText(turn)])).toEqual([
      [turns[0]?.task.id, "x"],
      [turns[0]?.task.id, "me"],
    ]);
    const all = await harness.log(asked.id);
    expect(progressOf(all).filter((step) => step.startsWith("before"))).toEqual(["before started", "before completed"]);
    expect(logViolations(all, { ended: true })).toEqual([]);
  });

  it("may be answered when the tasks of earlier steps are gone", async () => {
    let runs = 0;
    const counting = agentOf(async function* () {
      yield chunk("text", `${++runs}`, false);
    });
    const early = Array.from({ length: 10 }, (_, index) => `step${index}`);
    const harness = await startWorld({
      workflow: workflowOf({
        ...Object.fromEntries(early.map((name) => [name, { agent: "counting" }])),
        a: { needs: early },
        b: { needs: ["a"], input: early.map((name) => `\${steps.${name}.text}`).join(" ") },
      }),
      agents: { counting, a: asking("Who?"), b: wrapping("b") },
    });
    const asked = await harness.task("x");
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(await harness.memory.prune(0, early.length + 1)).toBe(early.length);
    const task = await harness.task("me", { taskId: asked.id });
    expect(textsOf(task)).toEqual({ b: `b(${early.map((_, index) => index + 1).join(" ")})` });
    expect(runs).toBe(early.length);
  });

  it("waits for those that were asked before", async () => {
    const names = ["a", "b", "c"];
    const harness = await startWorld({
      workflow: workflowOf(
        {
          a: { agent: "ask", input: "a" },
          b: { agent: "ask", input: "b" },
          c: { agent: "ask", input: "c" },
        },
        names,
      ),
      agents: {
        ask: agentOf(async function* (turn) {
          const [first] = turn.history;
          if (first === undefined) yield status("TASK_STATE_INPUT_REQUIRED", `${inputText(turn)}?`);
          else yield chunk("text", inputText(turn), false);
        }),
      },
    });
    const asked: string[] = [];
    let task = await harness.task("x");
    while (task.status.state === "TASK_STATE_INPUT_REQUIRED") {
      asked.push(statusTextOf(task));
      task = await harness.task(`for ${statusTextOf(task)}`, { taskId: task.id });
    }
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect([...asked].sort()).toEqual(["a?", "b?", "c?"]);
    expect(textsOf(task)).toEqual({ a: "for a?", b: "for b?", c: "for c?" });
  });

  it("leaves other steps running, which are found again with the answer", async () => {
    const gate = createGate();
    let runs = 0;
    const harness = await startWorld({
      workflow: workflowOf(
        { slow: {}, a: {}, last: { needs: ["slow", "a"], input: "${steps.slow.text} ${steps.a.text}" } },
        ["slow", "last"],
      ),
      agents: {
        slow: agentOf(async function* () {
          runs++;
          yield chunk("text", "one ", false);
          await gate.pass();
          yield chunk("text", "two");
        }),
        a: asking("Who?"),
        last: wrapping("last"),
      },
    });
    const asked = await harness.task("x");
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await gate.reached;
    gate.open();
    await settle();
    const task = await promptly(harness.task("me", { taskId: asked.id }));
    expect(textsOf(task)).toEqual({ slow: "one two", last: "last(one two Who?me)" });
    expect(runs).toBe(1);
  });

  it("of an item of a foreach is answered for that item", async () => {
    const harness = await startWorld({
      workflow: workflowOf({
        list: {},
        each: { needs: ["list"], foreach: "${steps.list.data}", input: "${item}" },
      }),
      agents: {
        list: agentOf(async function* () {
          yield { artifact: { artifactId: "x", parts: [{ data: ["a", "b", "c"] }] } };
        }),
        each: agentOf(async function* (turn) {
          const first = turn.history[0]?.parts[0];
          if (inputText(turn) === "b") yield status("TASK_STATE_INPUT_REQUIRED", "b?");
          else yield chunk("text", `${JSON.stringify(first)}${inputText(turn)}`, false);
        }),
      },
    });
    const asked = await harness.task("x");
    expect(stepsIn(await harness.log(asked.id)).at(-1)).toMatchObject({ step: "each[1]", state: "input-required" });
    const task = await harness.task("yes", { taskId: asked.id });
    expect(textsOf(task)).toEqual({ each: 'undefineda\n{"text":"b"}yes\nundefinedc' });
  });

  it("about authorization is shown while the step waits for it", async () => {
    const gate = createGate();
    const harness = await startWorld({
      workflow: workflowOf({ a: {} }),
      agents: {
        a: agentOf(async function* () {
          yield status("TASK_STATE_AUTH_REQUIRED", "Log in at https://login.example.");
          await gate.pass();
          yield chunk("text", "done", false);
        }),
      },
    });
    const waiting = await harness.task("x");
    expect(waiting.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(statusTextOf(waiting)).toContain("https://login.example");
    gate.open();
    await settle();
    expect(textsOf(await harness.get(waiting.id))).toEqual({ a: "done" });
    expect((await harness.get(waiting.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  /** An agent elsewhere that closes its stream with whatever it has to say. */
  const elsewhere = (agent: CallableAgent): CallableAgent => ({ ...agent, isLocal: false, recognizesRepeats: false });

  /** Waits to be authorised, which ends its turn, and says what it was told then. */
  const locked = agentOf(async function* (turn) {
    if (turn.history.length === 0) yield status("TASK_STATE_AUTH_REQUIRED", "Log in at https://login.example.");
    else yield chunk("text", `told ${inputText(turn)}`, false);
  });

  it("about authorization is passed the answer of the caller, and no other step is", async () => {
    const turns: string[] = [];
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {} }, ["a", "b"]),
      agents: {
        a: locked,
        b: agentOf(async function* (turn) {
          turns.push(inputText(turn));
          yield status("TASK_STATE_WORKING");
          await aborted(turn);
        }),
      },
    });
    const { id, status: first } = await harness.task("x");
    expect(first.state).toBe("TASK_STATE_AUTH_REQUIRED");
    const answered = harness.task("secret", { taskId: id });
    await settle(40);
    expect(textsOf(await harness.get(id))).toEqual({ a: "told secret" });
    expect(turns).toEqual(["x"]);
    await harness.cancel(id);
    await promptly(answered);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  it("about authorization is waited for after the agent has ended its stream", async () => {
    let state: TaskState = "TASK_STATE_AUTH_REQUIRED";
    const asked: string[] = [];
    const parts = [{ text: "Log in." }];
    const harness = await startWorld({
      workflow: workflowOf({ a: {} }),
      agents: { a: agentOf(async function* () {}) },
      resolve: (agent) => ({
        ...elsewhere(agent),
        async dispatch(operation: Operation) {
          asked.push(operation.kind);
          const message = { messageId: "m", role: "ROLE_AGENT", parts } as const;
          const artifacts = state === "TASK_STATE_COMPLETED" ? [{ artifactId: "r", parts: [{ text: "done" }] }] : [];
          const task = { id: "theirs", contextId: "c", status: { state, message }, artifacts };
          return operation.kind === "get" ? (task as never) : (toStream({ task }) as never);
        },
      }),
    });
    const waiting = await harness.task("x");
    expect(waiting.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(statusTextOf(waiting)).toBe("Step a waits: Log in.");
    await harness.clock.advance(60_000);
    expect(asked.slice(0, 3)).toEqual(["stream", "get", "get"]);
    expect((await harness.get(waiting.id)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    state = "TASK_STATE_COMPLETED";
    await harness.clock.advance(30_000);
    expect(textsOf(await harness.get(waiting.id))).toEqual({ a: "done" });
    expect(asked.slice(-2)).toEqual(["get", "subscribe"]);
  });

  it("is not answered by a message that begins a run of its own", async () => {
    const gate = createGate();
    const harness = await startWorld({
      workflow: workflowOf({ a: {} }),
      agents: {
        a: agentOf(async function* (turn) {
          yield chunk("text", inputText(turn), false);
          await gate.pass();
        }),
      },
    });
    const { id } = await harness.begin("first");
    await gate.reached;
    const second = harness.task("second", { taskId: id });
    await settle();
    gate.open();
    expect(textsOf(await promptly(second))).toEqual({ a: "second" });
  });
});

describe("cancellation", () => {
  /** Stops when it is asked to. */
  const working = (log: string[], name: string): Agent =>
    agentOf(async function* (turn) {
      yield status("TASK_STATE_WORKING");
      log.push(`${name} began`);
      await aborted(turn);
      log.push(`${name} stopped`);
    });

  it("reaches every step that runs, and starts no other", async () => {
    const log: string[] = [];
    const inner = workflowOf({ c: {} });
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {}, sub: { target: { workflow: inner } }, d: { needs: ["a"] } }),
      agents: { a: working(log, "a"), b: working(log, "b"), c: working(log, "c"), d: working(log, "d") },
    });
    const { id } = await harness.begin("x");
    await settle();
    const task = await promptly(harness.cancel(id));
    expect(task.status.state).toBe("TASK_STATE_CANCELED");
    expect(task.status.message).toBeUndefined();
    expect([...log].sort()).toEqual(["a began", "a stopped", "b began", "b stopped", "c began", "c stopped"]);
    expect(harness.engine.load.tasks).toBe(0);
  });

  it("names the agents that do not confirm it", async () => {
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {} }),
      agents: {
        a: working([], "a"),
        b: agentOf(async function* () {
          yield status("TASK_STATE_WORKING");
          await new Promise(() => {});
        }),
      },
    });
    const { id } = await harness.begin("x");
    await settle();
    const done = harness.cancel(id);
    await harness.clock.advance(4_000);
    const task = await promptly(done);
    expect(task.status.state).toBe("TASK_STATE_CANCELED");
    expect(statusTextOf(task)).toBe("Not all agents confirmed the cancellation: b (b: no answer).");
  });

  it("while the run waits for an answer reaches the step that asked and those that still run", async () => {
    const log: string[] = [];
    const harness = await startWorld({
      workflow: workflowOf({ a: {}, b: {}, later: { needs: ["a"] } }),
      agents: { a: asking("Who?"), b: working(log, "b"), later: asking("") },
    });
    const { id } = await harness.task("x");
    await settle();
    await harness.cancel(id);
    await settle();
    expect(log).toEqual(["b began", "b stopped"]);
    const states = (await Promise.all(["a", "b", "later"].map((agent) => harness.list({ agent })))).map(({ tasks }) =>
      tasks.map(({ status: { state } }) => state),
    );
    expect(states).toEqual([["TASK_STATE_CANCELED"], ["TASK_STATE_CANCELED"], []]);
    expect(harness.logged).not.toContain("An agent could not drop a cancelled task.");
  });
});
