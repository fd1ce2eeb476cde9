import { describe, expect, test } from "vitest";
import type { Agent } from "../agent.ts";
import {
  agentOf,
  chunk,
  createGate,
  echo,
  type Gate,
  inputText,
  messageAgent,
  status,
  textDraft,
} from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { callOf, framesOf, Harness } from "../testing/harness.ts";
import { createStoreGate } from "../testing/stores.ts";

const POLICIES = ["fail", "resume"] as const;
const SAME = { key: "key", messageId: "message" };

/** Works on its first message until the gate opens; notes what it was told. */
function listener(gate: Gate): { readonly agent: Agent; readonly told: string[] } {
  const told: string[] = [];
  const agent = agentOf(async function* (turn) {
    told.push(inputText(turn));
    yield status("TASK_STATE_WORKING");
    if (told.length === 1) await gate.pass();
  });
  return { agent, told };
}

describe("a repeated send with the same key", () => {
  test.each(POLICIES)("gives the same task and runs nothing again (%s)", async (onCrash) => {
    let runs = 0;
    const agent = agentOf(
      async function* () {
        yield chunk("a", String(++runs), false);
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const first = await promptly(harness.task("hello", SAME));
    const again = await promptly(harness.task("hello", SAME));
    expect(again).toEqual(first);
    expect(runs).toBe(1);
  });

  test.each(POLICIES)("at the same time runs once (%s)", async (onCrash) => {
    let runs = 0;
    const agent = agentOf(
      async function* () {
        yield chunk("a", String(++runs), false);
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const tasks = await promptly(Promise.all(Array.from({ length: 5 }, () => harness.task("hello", SAME))));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
    expect(tasks.every(({ status: { state } }) => state === "TASK_STATE_COMPLETED")).toBe(true);
    expect(runs).toBe(1);
    expect((await harness.memory.stats()).tasks).toBe(1);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test("waits for the task as the first did", async () => {
    const gate = createGate();
    const { agent } = listener(gate);
    const harness = await Harness.start({ agent });
    const first = harness.task("hello", SAME);
    await gate.reached;
    const again = harness.task("hello", SAME);
    const atOnce = await promptly(harness.task("hello", { ...SAME, returnImmediately: true }));
    expect(atOnce.status.state).not.toBe("TASK_STATE_COMPLETED");
    gate.open();
    expect((await promptly(again)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await promptly(first)).id).toBe(atOnce.id);
  });

  test.each(POLICIES)("gives the message that was the answer (%s)", async (onCrash) => {
    const harness = await Harness.start({ agent: messageAgent({ onCrash }) });
    const first = await promptly(harness.send("hello", SAME));
    expect(first).toHaveProperty("message");
    expect(await promptly(harness.send("hello", SAME))).toEqual(first);
    const [frame] = await promptly(framesOf(await harness.stream("hello", SAME)));
    expect(frame?.event).toEqual(first);
    expect((await harness.memory.stats()).tasks).toBe(0);
  });

  test.each(POLICIES)("at the same time gives the message that is the answer (%s)", async (onCrash) => {
    const harness = await Harness.start({ agent: messageAgent({ onCrash }) });
    const answers = await promptly(Promise.all([1, 2, 3].map(() => harness.send("hello", SAME))));
    expect(answers[0]).toHaveProperty("message");
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  test.each(POLICIES)("never hands out a task that vanishes (%s)", async (onCrash) => {
    for (let turns = 0; turns < 6; turns++) {
      const gate = createGate();
      const agent = agentOf(
        // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
        async function* () {
          await gate.pass();
          return textDraft("here");
        },
        { onCrash },
      );
      const harness = await Harness.start({ agent });
      const first = harness.send("hello", SAME);
      await gate.reached;
      const again = harness.send("hello", { ...SAME, returnImmediately: true });
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      gate.open();
      const [one, two] = await promptly(Promise.all([first, again]));
      await settle();
      for (const outcome of [one, two]) {
        if ("task" in outcome) expect((await harness.get(outcome.task.id)).status.state).toBe("TASK_STATE_COMPLETED");
      }
    }
  });

  test("as a stream shows the same log from its beginning", async () => {
    const harness = await Harness.start({ agent: echo() });
    const first = await promptly(framesOf(await harness.stream("hello", SAME)));
    const again = await promptly(framesOf(await harness.stream("hello", SAME)));
    expect(again.map(({ number, json }) => [number, json])).toEqual(first.map(({ number, json }) => [number, json]));
  });

  test("as a stream ends also when the log has been compacted", async () => {
    const harness = await Harness.start({ agent: echo(), times: { compactAfterMs: 1_000, housekeepingMs: 1_000 } });
    await promptly(framesOf(await harness.stream("hello", SAME)));
    await harness.clock.advance(10_000);
    const frames = await promptly(framesOf(await promptly(harness.stream("hello", SAME))));
    expect(frames.at(-1)?.event).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  });

  test("but other content is refused", async () => {
    const harness = await Harness.start({ agent: echo() });
    await harness.task("hello", SAME);
    const conflict = { code: "IDEMPOTENCY_CONFLICT" };
    await expect(harness.send("good bye", SAME)).rejects.toMatchObject(conflict);
    await expect(harness.stream("good bye", SAME)).rejects.toMatchObject(conflict);
    const both = await Promise.allSettled([
      harness.send("one", { key: "other", messageId: "m" }),
      harness.send("two", { key: "other", messageId: "m" }),
    ]);
    expect(both.map(({ status: how }) => how).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("of an agent that was restarted at another address is the same send", async () => {
    const harness = await Harness.start({ agent: echo() });
    const send = (ancestor: string) => {
      const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] } as const;
      const call = { ...callOf({ key: "key" }), hops: { hops: 0, ancestors: [ancestor] } };
      return harness.engine.agent("agent").dispatch({ kind: "send", message }, call);
    };
    const [first, again] = [await send("http://one"), await send("http://two")];
    expect(again).toEqual(first);
  });

  test("of another owner, tenant or agent is another send", async () => {
    const harness = await Harness.start({ agents: { agent: echo(), other: echo() } });
    const ids = new Set<string>();
    for (const where of [{}, { owner: "bob" }, { tenant: "t" }, { agent: "other" }]) {
      ids.add((await harness.task("hello", { ...SAME, ...where })).id);
    }
    expect(ids.size).toBe(4);
  });

  test("after its time is a new send", async () => {
    const harness = await Harness.start({ agent: echo(), times: { idempotencyMs: 1_000 } });
    const first = await harness.task("hello", SAME);
    await harness.clock.advance(1_001);
    expect((await harness.task("hello", SAME)).id).not.toBe(first.id);
  });

  test("without a key is a new message, whatever its id", async () => {
    const harness = await Harness.start({ agent: echo() });
    const [one, two] = [await harness.task("a", { messageId: "m" }), await harness.task("a", { messageId: "m" })];
    expect(one.id).not.toBe(two.id);
  });
});

describe("a repeated message to a task", () => {
  test("that waited for it is taken in once", async () => {
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        if (told.length === 1) yield status("TASK_STATE_INPUT_REQUIRED", "more?");
      }),
    });
    const { id } = await harness.task("first");
    const answers = await promptly(Promise.all([1, 2, 3].map(() => harness.task("more", { ...SAME, taskId: id }))));
    expect(answers.map(({ status: { state } }) => state)).toEqual(Array(3).fill("TASK_STATE_COMPLETED"));
    expect(told).toEqual(["first", "more"]);
    expect((await promptly(harness.task("more", { ...SAME, taskId: id }))).id).toBe(id);
  });

  test("that is at work is taken in once", async () => {
    const gate = createGate();
    const { agent, told } = listener(gate);
    const harness = await Harness.start({ agent });
    const { id } = await harness.begin("first");
    await gate.reached;
    const answers = Promise.all([1, 2, 3].map(() => harness.task("more", { ...SAME, taskId: id })));
    await settle();
    gate.open();
    expect((await promptly(answers)).every(({ status: { state } }) => state === "TASK_STATE_COMPLETED")).toBe(true);
    expect(told).toEqual(["first", "more"]);
  });

  test("of several at once is recognised for each of them", async () => {
    const gate = createGate();
    const { agent, told } = listener(gate);
    const harness = await Harness.start({ agent });
    const { id } = await harness.begin("first");
    await gate.reached;
    const say = (text: string) => harness.task(text, { key: `key ${text}`, messageId: `id ${text}`, taskId: id });
    const first = [say("a"), say("b"), say("c")];
    await settle();
    const again = [say("c"), say("b"), say("a")];
    await settle();
    gate.open();
    await promptly(Promise.all([...first, ...again]));
    expect(told).toEqual(["first", "a", "b", "c"]);
  });

  test("that comes while the first is being stored does no harm to the run", async () => {
    const gate = createGate();
    const { agent, told } = listener(gate);
    const held = createStoreGate();
    const harness = await Harness.start({ agent, wrap: held.wrap });
    const { id } = await harness.begin("first");
    await gate.reached;
    await settle();
    held.gate.hold();
    const first = harness.task("more", { ...SAME, taskId: id });
    await held.gate.waiting();
    const again = harness.task("more", { ...SAME, taskId: id });
    await settle();
    held.gate.open();
    await settle();
    gate.open();
    const answers = await promptly(Promise.all([first, again]));
    expect(answers.map(({ status: { state } }) => state)).toEqual(["TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"]);
    expect(told).toEqual(["first", "more"]);
  });
});

describe("a message with a key is answered or refused, never lost", () => {
  test("when the task is parked while it comes in", async () => {
    const asks = createGate();
    const parks = createGate();
    const told: string[] = [];
    const held = createStoreGate();
    const harness = await Harness.start({
      wrap: held.wrap,
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        if (told.length > 1) return;
        yield chunk("a", "x", false);
        await asks.pass();
        yield status("TASK_STATE_INPUT_REQUIRED", "more?");
        await parks.pass();
      }),
    });
    held.gate.hold();
    const begun = harness.begin("first", { key: "first" });
    await held.gate.waiting();
    await held.gate.step();
    const { id } = await begun;
    await held.gate.waiting();
    asks.open();
    await settle();
    const answer = harness.task("more", { taskId: id, key: "key" });
    await settle();
    parks.open();
    await settle();
    held.gate.open();
    expect((await promptly(answer)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(told).toEqual(["first", "more"]);
  });

  test("when the task ends while it comes in", async () => {
    const ends = createGate();
    const told: string[] = [];
    const held = createStoreGate();
    const harness = await Harness.start({
      wrap: held.wrap,
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        yield chunk("a", "x", false);
        await ends.pass();
      }),
    });
    held.gate.hold();
    const begun = harness.begin("first", { key: "first" });
    await held.gate.waiting();
    await held.gate.step();
    const { id } = await begun;
    await held.gate.waiting();
    const answer = harness.task("more", { taskId: id, key: "key" }).then(
      () => "answered",
      (error: { code: string }) => error.code,
    );
    await settle();
    ends.open();
    await settle();
    held.gate.open();
    const how = await promptly(answer);
    expect([how, told.includes("more")]).toEqual(
      how === "answered" ? ["answered", true] : ["UNSUPPORTED_OPERATION", false],
    );
  });
});
