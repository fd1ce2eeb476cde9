import { describe, expect, test } from "vitest";
import { RunQueue } from "../concurrency.ts";
import { agentOf, chunk, createGate, inputText, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { Harness } from "../testing/harness.ts";
import { logViolations } from "../testing/log-invariants.ts";

describe("messages to one task", () => {
  test("are answered one after the other, in the order they came", async () => {
    let running = 0;
    const told: string[] = [];
    const gate = createGate();
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        expect(++running).toBe(1);
        told.push(inputText(turn));
        yield chunk(inputText(turn), "x", false);
        if (told.length === 1) await gate.pass();
        running--;
      }),
    });
    const { id } = await harness.begin("0");
    await gate.reached;
    const answers = ["1", "2", "3"].map((text) => harness.task(text, { taskId: id }));
    await settle();
    gate.open();
    const tasks = await promptly(Promise.all(answers));
    expect(told).toEqual(["0", "1", "2", "3"]);
    for (const task of tasks) {
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task.artifacts?.map(({ artifactId }) => artifactId)).toEqual(["0", "1", "2", "3"]);
    }
    const stored = await harness.stored(id);
    expect(stored.history?.map(({ parts }) => parts)).toEqual(["0", "1", "2", "3"].map((text) => [{ text }]));
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  test("are not lost when the first turn says that it completed", async () => {
    const gate = createGate();
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        if (told.length === 1) await gate.pass();
        yield status("TASK_STATE_COMPLETED", `done with ${inputText(turn)}`);
      }),
    });
    const { id } = await harness.begin("first");
    await gate.reached;
    const second = harness.task("second", { taskId: id });
    await settle();
    gate.open();
    const task = await promptly(second);
    expect(told).toEqual(["first", "second"]);
    expect(task.status.message?.parts).toEqual([{ text: "done with second" }]);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  test("whose callers read the status only get the text of the turn's artifacts there, too", async () => {
    const agent = agentOf(async function* (turn) {
      yield chunk("a", "the ", false);
      yield chunk("a", inputText(turn), true);
      yield chunk("b", "and more", false);
      if (inputText(turn) === "first") yield status("TASK_STATE_INPUT_REQUIRED", "Which?");
      else if (inputText(turn) === "said") yield status("TASK_STATE_COMPLETED", "Done.");
    });
    const profile = { ...agent.profile, repeatTextInStatus: true };
    const harness = await Harness.start({ agent: { ...agent, profile, run: (turn) => agent.run(turn) } });
    const { id, status: asked } = await promptly(harness.task("first"));
    expect(asked).toMatchObject({ state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "Which?" }] } });
    const { status: ended } = await promptly(harness.task("second", { taskId: id }));
    expect(ended).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "the second\n\nand more" }] },
    });
    expect((await promptly(harness.task("said"))).status.message?.parts).toEqual([{ text: "Done." }]);
  });

  test("to a task that asked at the same moment answer the question", async () => {
    const gate = createGate();
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        if (told.length > 1) return;
        yield status("TASK_STATE_INPUT_REQUIRED", "which?");
        await gate.pass();
      }),
    });
    const { id } = await harness.task("first");
    const second = harness.task("this", { taskId: id });
    await settle();
    gate.open();
    expect((await promptly(second)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(told).toEqual(["first", "this"]);
  });

  test("to a task that asks only after they came answer the question", async () => {
    const gate = createGate();
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        if (told.length > 1) return;
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield status("TASK_STATE_INPUT_REQUIRED", "which?");
      }),
    });
    const { id } = await harness.begin("first");
    await gate.reached;
    await harness.begin("this", { taskId: id });
    gate.open();
    await settle();
    expect(told).toEqual(["first", "this"]);
    const log = await harness.log(id);
    const states = log.flatMap(({ event }) => ("statusUpdate" in event ? [event.statusUpdate.status.state] : []));
    expect(states.slice(-3)).toEqual(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test("at the same time to a task that waits are all answered", async () => {
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        yield status("TASK_STATE_INPUT_REQUIRED", "and then?");
      }),
    });
    const { id } = await harness.task("0");
    await settle();
    await promptly(Promise.all(["1", "2", "3"].map((text) => harness.send(text, { taskId: id }))));
    await settle();
    expect([...told].sort()).toEqual(["0", "1", "2", "3"]);
    expect(logViolations(await harness.log(id))).toEqual([]);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test("of another context or to a task that ended are refused", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        yield inputText(turn) === "ask" ? status("TASK_STATE_INPUT_REQUIRED", "?") : status("TASK_STATE_COMPLETED");
      }),
    });
    const open = await harness.task("ask");
    await expect(harness.send("x", { taskId: open.id, contextId: "other" })).rejects.toMatchObject({
      code: "INVALID_PARAMS",
    });
    const ended = await harness.task("end");
    await expect(harness.send("x", { taskId: ended.id })).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
    await expect(harness.send("x", { taskId: "unknown" })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  test("replaced definitions answer the next turn", async () => {
    const asking = (name: string) =>
      agentOf(async function* () {
        yield status("TASK_STATE_INPUT_REQUIRED", name);
      });
    const harness = await Harness.start({ agent: asking("old") });
    const { id } = await harness.task("hello");
    harness.engine.replaceAgent("agent", asking("new"));
    const { status: now } = await harness.task("hello again", { taskId: id });
    expect(now.message?.parts).toEqual([{ text: "new" }]);
  });
});

describe("places to run", () => {
  test("are as many as the agent allows, given by turns to owners, in order within one", async () => {
    const started: string[] = [];
    const gates = new Map<string, ReturnType<typeof createGate>>();
    const harness = await Harness.start({
      agent: agentOf(
        async function* (turn) {
          const gate = createGate();
          gates.set(inputText(turn), gate);
          started.push(inputText(turn));
          yield status("TASK_STATE_WORKING");
          await gate.pass();
        },
        { concurrency: 2 },
      ),
    });
    for (const text of ["a1", "a2", "a3", "a4"]) await harness.begin(text, { owner: "a" });
    await harness.begin("b1", { owner: "b" });
    await harness.begin("c1", { owner: "c" });
    await harness.begin("c2", { owner: "c" });
    await settle();
    expect(started).toEqual(["a1", "a2"]);
    expect(harness.engine.load.queued).toBe(5);
    for (let next = 0; next < 7; next++) {
      gates.get(started[next] ?? "")?.open();
      await settle();
    }
    expect(started).toEqual(["a1", "a2", "a3", "b1", "c1", "a4", "c2"]);
    expect(harness.engine.load).toMatchObject({ tasks: 0, queued: 0 });
  });

  test("come free again after thousands were cancelled in line", async () => {
    const gate = createGate();
    let runs = 0;
    const harness = await Harness.start({
      agent: agentOf(
        async function* () {
          runs++;
          await gate.pass();
          yield status("TASK_STATE_WORKING");
        },
        { concurrency: 1 },
      ),
      limits: { queue: 20_000, tasksPerOwner: 20_000 },
    });
    const first = harness.send("first");
    await gate.reached;
    const waiting = await Promise.all(Array.from({ length: 9_000 }, () => harness.begin("waits")));
    await Promise.all(waiting.map(({ id }) => harness.cancel(id)));
    gate.open();
    await promptly(first);
    expect((await promptly(harness.task("last"))).status.state).toBe("TASK_STATE_COMPLETED");
    expect(runs).toBe(2);
  });

  test("queue: starts are as many as leaves, and never more at once than the limit", () => {
    const queue = new RunQueue(3);
    let running = 0;
    let most = 0;
    const start = () => {
      running++;
      most = Math.max(most, running);
    };
    for (let index = 0; index < 20; index++) if (queue.enter(`owner ${index % 4}`, start)) start();
    for (let index = 0; index < 20; index++) {
      running--;
      queue.leave();
    }
    expect([running, most, queue.waiting]).toEqual([0, 3, 0]);
  });
});
