import { describe, expect, test } from "vitest";
import { LogEntry } from "../../model/event.ts";
import type { Refusal, TaskStore, Write } from "../../store/contract.ts";
import type { AgentEvent } from "../agent.ts";
import { aborted, agentOf, chunk, createGate, echo, inputText, status, textDraft } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { logViolations, snapshotViolations } from "../testing/log-invariants.ts";
import { createStoreGate, FlakyStore, overrideStore } from "../testing/stores.ts";

const counting = (count: number) =>
  agentOf(async function* () {
    for (let index = 0; index < count; index++) yield chunk("a", `${index} `, index > 0);
  });
const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index} `).join("");

/** Refuses the nth append of a run once, without making it. */
function refusing(refusal: Exclude<Refusal, "duplicate">, nth: number): (store: TaskStore) => TaskStore {
  let appends = 0;
  return (inner) =>
    overrideStore(inner, {
      async write(writes) {
        const refused = new Set(writes.filter((write) => write.kind === "append" && ++appends === nth));
        const made = await inner.write(writes.filter((write) => !refused.has(write)));
        const results = [...made];
        return writes.map((write) =>
          refused.has(write) ? { ok: false, refusal } : (results.shift() as (typeof made)[number]),
        );
      },
    });
}

describe("numbers", () => {
  test("are 1 to n without gaps, one event each", async () => {
    const harness = await Harness.start({ agent: counting(50) });
    const { id } = await promptly(harness.task("go"));
    const log = await harness.log(id);
    expect(log).toHaveLength(53);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(snapshotViolations(log, await harness.stored(id))).toEqual([]);
  });
});

describe("a write that the store refuses", () => {
  test("because someone else wrote first is made again behind it", async () => {
    const gate = createGate();
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        told.push(inputText(turn));
        yield chunk("a", "one", false);
        if (told.length === 1) await gate.pass();
        yield chunk("a", "two");
        await settle(2);
      }),
    });
    const answer = harness.task("first");
    await gate.reached;
    await settle();
    const head = await harness.memory.head((await harness.list()).tasks[0]?.id ?? "");
    if (head === undefined) throw new Error("There is no task.");
    const update = { taskId: head.id, contextId: head.contextId, status: { state: "TASK_STATE_WORKING" as const } };
    const message = { messageId: "foreign", role: "ROLE_USER" as const, parts: [{ text: "from elsewhere" }] };
    const entry = LogEntry.of(head.number + 1, { statusUpdate: update }, message);
    const foreign: Write = {
      kind: "append",
      id: head.id,
      expect: head.number,
      entries: [entry],
      status: update.status,
    };
    expect(await harness.memory.write([foreign])).toMatchObject([{ ok: true }]);
    gate.open();
    const task = await promptly(answer);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(told).toEqual(["first", "from elsewhere"]);
    expect(logViolations(await harness.log(head.id), { ended: true })).toEqual([]);
  });

  test.each([
    ["fenced", "UNAVAILABLE"],
    ["terminal", "UNSUPPORTED_OPERATION"],
    ["missing", "UNAVAILABLE"],
  ] as const)("as %s ends the run, tells the agent and the caller", async (refusal, code) => {
    let told = false;
    const gate = createGate();
    const harness = await Harness.start({
      wrap: refusing(refusal, 1),
      agent: agentOf(async function* (turn) {
        await gate.pass();
        yield status("TASK_STATE_WORKING");
        await aborted(turn);
        told = true;
      }),
    });
    const answer = harness.task("hello");
    await gate.reached;
    await settle();
    gate.open();
    await expect(promptly(answer)).rejects.toMatchObject({ code });
    await settle();
    expect(told).toBe(true);
    expect(harness.counts.runs_fenced).toBe(1);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test("as out of position without anything to read is not tried for ever", async () => {
    const harness = await Harness.start({ wrap: refusing("position", 1), agent: counting(3) });
    const answer = harness.task("hello").catch(() => undefined);
    await harness.clock.advance(60_000);
    await promptly(answer);
    expect(harness.engine.load.tasks).toBe(0);
  });
});

describe("a store that fails", () => {
  test.each([1, 2, 3, 4])("%i times is asked again, and nothing is lost or doubled", async (times) => {
    const flaky = new FlakyStore();
    const gate = createGate();
    const harness = await Harness.start({
      wrap: flaky.wrap,
      agent: agentOf(async function* () {
        yield chunk("a", "one ", false);
        await gate.pass();
        yield chunk("a", "two ");
      }),
    });
    const answer = harness.task("hello");
    await gate.reached;
    await settle();
    flaky.fail(times);
    gate.open();
    await harness.clock.advance(10_000);
    const task = await promptly(answer);
    expect(flaky.failures).toBe(times);
    expect(task.artifacts?.[0]?.parts).toEqual([{ text: "one two " }]);
    expect(logViolations(await harness.log(task.id), { ended: true })).toEqual([]);
  });

  test("after it had written is recognised: the events are not written twice", async () => {
    const flaky = new FlakyStore();
    const gate = createGate();
    const harness = await Harness.start({
      wrap: flaky.wrap,
      agent: agentOf(async function* () {
        yield chunk("a", "one ", false);
        await gate.pass();
        yield chunk("a", "two ");
        await settle();
        await harness.clock.advance(1_000);
        yield chunk("a", "three");
      }),
    });
    const answer = harness.task("hello");
    await gate.reached;
    await settle();
    flaky.fail(1, "after");
    gate.open();
    const task = await promptly(answer);
    expect(flaky.failures).toBe(1);
    expect(task.artifacts?.[0]?.parts).toEqual([{ text: "one two three" }]);
    expect(logViolations(await harness.log(task.id), { ended: true })).toEqual([]);
  });

  test.each(["fail", "resume"] as const)("after it had written a whole task is recognised (%s)", async (onCrash) => {
    const flaky = new FlakyStore();
    const harness = await Harness.start({ wrap: flaky.wrap, agent: echo({ onCrash }) });
    flaky.fail(1, "after");
    const answer = harness.task("hello");
    await harness.clock.advance(1_000);
    expect((await promptly(answer)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await harness.memory.stats()).tasks).toBe(1);
  });

  test("for good fails every caller with UNAVAILABLE, ends streams and tells the agents", async () => {
    const flaky = new FlakyStore();
    let begun = 0;
    let told = 0;
    const gate = createGate();
    const harness = await Harness.start({
      wrap: flaky.wrap,
      agent: agentOf(async function* (turn) {
        begun++;
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield chunk("a", "x", false);
        await aborted(turn);
        told++;
      }),
    });
    const unavailable = { code: "UNAVAILABLE", retryAfter: expect.any(Number) };
    const answers = [harness.task("one"), harness.task("two")];
    const stream = framesOf(await promptly(harness.stream("three")));
    await gate.reached;
    await settle();
    flaky.fail(Number.POSITIVE_INFINITY);
    gate.open();
    const outcomes = answers.map((answer) => expect(answer).rejects.toMatchObject(unavailable));
    const refused = expect(harness.send("four")).rejects.toMatchObject(unavailable);
    await settle();
    // By now the store is known to fail: a run that must not be repeated does not begin.
    const unbegun = expect(harness.send("five")).rejects.toMatchObject(unavailable);
    await harness.clock.advance(60_000);
    await promptly(Promise.all([...outcomes, refused, unbegun, stream]));
    await settle();
    expect([begun, told]).toEqual([4, 4]);
    expect(harness.engine.load.tasks).toBe(0);
  });

  test.each(["fail", "resume"] as const)("refuses a stream instead of beginning it (%s)", async (onCrash) => {
    const flaky = new FlakyStore();
    const harness = await Harness.start({ wrap: flaky.wrap, agent: echo({ onCrash }) });
    flaky.fail(Number.POSITIVE_INFINITY);
    const refused = expect(harness.stream("hello")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await harness.clock.advance(60_000);
    await promptly(refused);
    expect(harness.engine.load).toMatchObject({ tasks: 0, streams: 0 });
  });

  test("for long does not leave a task stuck once it works again", async () => {
    const flaky = new FlakyStore();
    const gate = createGate();
    const harness = await Harness.start({
      wrap: flaky.wrap,
      agent: agentOf(
        async function* () {
          yield status("TASK_STATE_WORKING");
          await gate.pass();
          yield chunk("a", "x", false);
        },
        { onCrash: "resume" },
      ),
    });
    const { id } = await promptly(harness.begin("hello"));
    await gate.reached;
    await settle();
    flaky.fail(5);
    gate.open();
    await harness.clock.advance(120_000);
    expect(flaky.failures).toBe(5);
    expect((await harness.stored(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });
});

describe("a store that fails for long while a task is taken back for a message", () => {
  test.each(["fail", "resume"] as const)("fails the caller and leaves nothing stuck (%s)", async (onCrash) => {
    const flaky = new FlakyStore();
    const gate = createGate();
    const harness = await Harness.start({
      wrap: flaky.wrap,
      agent: agentOf(
        // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
        async function* () {
          await gate.pass();
          return textDraft("here");
        },
        { onCrash },
      ),
    });
    const answer = harness.send("hello").then(
      () => "answered",
      (error: { code: string }) => error.code,
    );
    await gate.reached;
    await settle();
    const { id } = (await harness.list()).tasks[0] ?? { id: "" };
    flaky.fail(5);
    gate.open();
    await harness.clock.advance(120_000);
    expect(await promptly(answer)).toBe("UNAVAILABLE");
    expect(flaky.failures).toBe(5);
    const log = await harness.log(id);
    expect(log.length === 0 ? [] : logViolations(log, { ended: true })).toEqual([]);
    expect(harness.engine.load.tasks).toBe(0);
  });
});

describe("an agent that says what cannot be", () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  test.each([
    ["an artifact without parts", { artifact: { artifactId: "a" } }],
    ["a part that is none", { artifact: { artifactId: "a", parts: [7] } }],
    ["a way back", { status: "TASK_STATE_SUBMITTED" }],
    ["an unknown state", { status: "NONSENSE" }],
    ["nothing", undefined],
    ["data that is no JSON", { artifact: { artifactId: "a", parts: [{ data: 10n }] } }],
    ["data without end", { artifact: { artifactId: "a", parts: [{ data: circular }] } }],
    ["metadata that is no JSON", { status: "TASK_STATE_WORKING", metadata: circular }],
  ])("%s: fails its own task and no other", async (_name, event) => {
    const gate = createGate();
    const serialising = (inner: TaskStore): TaskStore =>
      overrideStore(inner, {
        async write(writes) {
          for (const write of writes) if ("entries" in write) for (const entry of write.entries) void entry.json;
          return inner.write(writes);
        },
      });
    const harness = await Harness.start({
      wrap: serialising,
      agents: {
        bad: agentOf(async function* () {
          yield status("TASK_STATE_WORKING");
          await gate.pass();
          yield event as AgentEvent;
        }),
        good: agentOf(async function* () {
          yield status("TASK_STATE_WORKING");
          await gate.pass();
          yield chunk("a", "fine", false);
        }),
      },
    });
    const answers = ["bad", "good", "bad", "good"].map((agent) => harness.task("hello", { agent }));
    await gate.reached;
    await settle();
    gate.open();
    const tasks = await promptly(Promise.all(answers));
    const [failed, completed] = ["TASK_STATE_FAILED", "TASK_STATE_COMPLETED"];
    expect(tasks.map(({ status: { state } }) => state)).toEqual([failed, completed, failed, completed]);
    for (const { id } of tasks) expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });
});

describe("a run ahead of a slow store", () => {
  test("has its text chunks merged, the text intact and the numbers gapless", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ wrap: held.wrap, agent: counting(1_000) });
    held.gate.hold();
    const answer = harness.task("hello", { key: "key" });
    await held.gate.waiting();
    await held.gate.step();
    await held.gate.waiting();
    await settle();
    held.gate.open();
    const task = await promptly(answer);
    const log = await harness.log(task.id);
    expect(task.artifacts?.[0]?.parts).toEqual([{ text: numbers(1_000) }]);
    expect(harness.counts.events_merged).toBeGreaterThan(100);
    expect(log.length).toBeLessThan(300);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(snapshotViolations(log, await harness.stored(task.id))).toEqual([]);
  });

  test("waits when what is pending cannot be merged", async () => {
    const held = createStoreGate();
    let made = 0;
    const harness = await Harness.start({
      wrap: held.wrap,
      limits: { pendingEvents: 20 },
      agent: agentOf(async function* () {
        for (; made < 1_000; made++) yield { artifact: { artifactId: "a", parts: [{ data: made }] }, append: made > 0 };
      }),
    });
    held.gate.hold();
    const answer = harness.task("hello");
    await held.gate.waiting();
    await held.gate.step();
    await held.gate.waiting();
    await settle();
    expect(made).toBeLessThanOrEqual(2 * 20);
    held.gate.open();
    const task = await answer;
    expect(task.artifacts?.[0]?.parts).toHaveLength(1_000);
    const sizes = held.gate.groups.flat().map((write) => ("entries" in write ? write.entries.length : 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(21);
  });

  test("is not slowed down below the limit: chunks keep their own numbers", async () => {
    const harness = await Harness.start({ agent: counting(40) });
    const { id } = await promptly(harness.task("hello"));
    expect(harness.counts.events_merged).toBeUndefined();
    expect(await harness.log(id)).toHaveLength(43);
  });
});

test("many tasks are written in few groups", async () => {
  const held = createStoreGate();
  const harness = await Harness.start({ wrap: held.wrap, agent: echo() });
  await promptly(Promise.all(Array.from({ length: 100 }, () => harness.task("hello"))));
  expect(held.gate.groups.length).toBeLessThan(20);
});

test("what comes after the terminal event is dropped and counted", async () => {
  const gate = createGate();
  const harness = await Harness.start({
    agent: agentOf(
      async function* (turn) {
        yield status("TASK_STATE_WORKING");
        await aborted(turn);
        await gate.pass();
        yield chunk("a", "late", false);
      },
      { timeoutMs: 1_000 },
    ),
  });
  const answer = harness.task("hello");
  await harness.clock.advance(1_000);
  const { id } = await promptly(answer);
  const { length } = await harness.log(id);
  gate.open();
  await settle();
  expect(await harness.log(id)).toHaveLength(length);
  expect((await harness.get(id)).status.state).toBe("TASK_STATE_FAILED");
});
