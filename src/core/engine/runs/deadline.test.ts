import { describe, expect, test } from "vitest";
import { EXTENSIONS } from "../../model/extensions.ts";
import { statusText } from "../../model/status-texts.ts";
import type { Agent, Turn } from "../agent.ts";
import { aborted, agentOf, createGate, inputText, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { Harness } from "../testing/harness.ts";

const within = (remainingMs: number) => ({ metadata: { [EXTENSIONS.hops]: { hops: 1, ancestors: [], remainingMs } } });

/** Works until it is told to stop, or until the gate is open. */
function working(more: Partial<Agent> = {}) {
  const turns: Turn[] = [];
  const stopped: string[] = [];
  const gate = createGate();
  const agent = agentOf(async function* (turn) {
    turns.push(turn);
    yield status("TASK_STATE_WORKING");
    await Promise.race([gate.pass(), aborted(turn)]);
    if (turn.signal.aborted) stopped.push(inputText(turn));
  }, more);
  return { agent, gate, stopped, turns };
}

const failedWith = (text: string) => ({
  state: "TASK_STATE_FAILED",
  message: { parts: [{ text }] },
});

describe("the deadline of a caller", () => {
  test("ends a run that is not finished by then, and tells the agent", async () => {
    const { agent, stopped } = working();
    const harness = await Harness.start({ agent });
    const answer = harness.task("slow", within(5_000));
    await harness.clock.advance(4_999);
    expect(stopped).toEqual([]);
    await harness.clock.advance(1);
    expect((await promptly(answer)).status).toMatchObject(failedWith(statusText("deadlinePassed")));
    expect(stopped).toEqual(["slow"]);
  });

  test("does not concern a run that is finished before, nor messages that come without one", async () => {
    const { agent, gate } = working();
    const harness = await Harness.start({ agent });
    const answers = [harness.task("bounded", within(5_000)), harness.task("not bounded")];
    await gate.reached;
    gate.open();
    for (const { status } of await promptly(Promise.all(answers))) expect(status.state).toBe("TASK_STATE_COMPLETED");
    await harness.clock.advance(60_000);
  });

  test.each([
    [2_000, 5_000, statusText("agentTimedOut", 2), 2_000],
    [9_000, 5_000, statusText("deadlinePassed"), 5_000],
    [undefined, 5_000, statusText("deadlinePassed"), 5_000],
  ])("counts beside the time limit of the agent: %s and %i", async (timeoutMs, remaining, text, passed) => {
    const { agent, turns } = working({ timeoutMs });
    const harness = await Harness.start({ agent });
    const began = harness.clock.now();
    const answer = harness.task("slow", within(remaining));
    await settle();
    expect(turns[0]?.hops.deadline).toBe(began + passed);
    await harness.clock.advance(passed);
    expect((await promptly(answer)).status).toMatchObject(failedWith(text));
  });

  test("that passes while the task waits for its agent keeps the run from starting", async () => {
    const { agent, gate, turns } = working({ concurrency: 1 });
    const harness = await Harness.start({ agent });
    const first = harness.task("first");
    await gate.reached;
    const second = harness.task("second", within(1_000));
    await harness.clock.advance(1_000);
    gate.open();
    expect((await promptly(first)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await promptly(second)).status).toMatchObject(failedWith(statusText("deadlinePassed")));
    expect(turns.map(inputText)).toEqual(["first"]);
  });

  test("that has passed already keeps the run from starting", async () => {
    const { agent, turns } = working();
    const harness = await Harness.start({ agent });
    expect((await promptly(harness.task("late", within(0)))).status).toMatchObject(
      failedWith(statusText("deadlinePassed")),
    );
    expect(turns).toEqual([]);
  });

  test("is that of the message, not of the task", async () => {
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        yield told.length === 1 ? status("TASK_STATE_INPUT_REQUIRED", "?") : status("TASK_STATE_COMPLETED");
      }),
    });
    const { id } = await promptly(harness.task("first", within(1_000)));
    await harness.clock.advance(60_000);
    const done = await promptly(harness.task("second", { taskId: id }));
    expect([done.status.state, told]).toEqual(["TASK_STATE_COMPLETED", ["first", "second"]]);
  });

  test.each([
    ["passed meanwhile fails the task", 10_000, [1], failedWith(statusText("deadlinePassed"))],
    ["has not passed is the same for the next process", 60_000, [1, 2], failedWith(statusText("deadlinePassed"))],
  ])("that %s after a crash", async (_name, remaining, attempts, expected) => {
    const { agent, turns } = working({ onCrash: "resume" });
    const first = await Harness.start({ agent });
    const began = first.clock.now();
    const { id } = await first.begin("hello", within(remaining));
    await settle();
    first.crash();
    await first.clock.advance(16_000);
    const second = await Harness.start({ agent, after: first });
    await settle();
    expect(turns.map(({ attempt }) => attempt)).toEqual(attempts);
    expect(turns.map(({ hops }) => hops.deadline)).toEqual(turns.map(() => began + remaining));
    await second.clock.advance(Math.max(0, began + remaining - second.clock.now()));
    expect((await second.get(id)).status).toMatchObject(expected);
  });

  test("of a message that another agent of the process sends is passed on", async () => {
    const { agent, turns } = working({ timeoutMs: 30_000 });
    const harness = await Harness.start({
      agents: {
        outer: agentOf(
          async function* (turn) {
            yield status("TASK_STATE_WORKING");
            const message = { messageId: "inner", role: "ROLE_USER" as const, parts: [{ text: "inner" }] };
            const { caller, hops } = turn;
            const call = { caller, tenant: "", extensions: [], dialect: "test", hops };
            await harness.engine.agent("inner").dispatch({ kind: "send", message }, call);
          },
          { timeoutMs: 8_000 },
        ),
        inner: agent,
      },
    });
    const began = harness.clock.now();
    void harness.task("go", { agent: "outer" });
    await settle();
    expect(turns[0]?.hops).toMatchObject({ hops: 1, deadline: began + 8_000 });
    await harness.clock.advance(8_000);
  });
});
