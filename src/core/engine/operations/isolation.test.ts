import { describe, expect, test } from "vitest";
import { aborted, agentOf, chunk, createGate, echo, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";

const asking = agentOf(async function* () {
  yield status("TASK_STATE_INPUT_REQUIRED", "?");
});

describe("another owner, tenant or agent", () => {
  const STRANGERS = [{ owner: "bob" }, { tenant: "other" }, { agent: "other" }, { owner: "" }];
  const unknown = { code: "TASK_NOT_FOUND", message: "Task not found." };

  test.each(["parked", "working", "ended"])("cannot tell that a task exists: %s", async (how) => {
    const gate = createGate();
    const working = agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
    });
    const agent = { parked: asking, working, ended: echo() }[how] ?? echo();
    const harness = await Harness.start({ agents: { agent, other: agent } });
    const { id, contextId } = await harness.begin("secret");
    await settle();
    for (const stranger of STRANGERS) {
      await expect(harness.get(id, stranger)).rejects.toMatchObject(unknown);
      await expect(harness.cancel(id, stranger)).rejects.toMatchObject(unknown);
      await expect(harness.subscribe(id, undefined, stranger)).rejects.toMatchObject(unknown);
      await expect(harness.subscribe(id, 1, stranger)).rejects.toMatchObject(unknown);
      await expect(harness.send("mine", { ...stranger, taskId: id })).rejects.toMatchObject(unknown);
      await expect(harness.send("mine", { ...stranger, taskId: id, key: "k" })).rejects.toMatchObject(unknown);
      await expect(harness.stream("mine", { ...stranger, taskId: id })).rejects.toMatchObject(unknown);
      expect((await harness.list(stranger)).tasks).toEqual([]);
      expect((await harness.list(stranger)).totalSize).toBe(0);
    }
    expect((await harness.get(id)).history).toHaveLength(1);
    expect((await harness.list()).tasks.map((task) => task.id)).toEqual([id]);
    expect(contextId).not.toBe("");
    gate.open();
  });

  test("may use the same context id without meeting anyone there", async () => {
    const harness = await Harness.start({ agent: echo() });
    await harness.task("one", { contextId: "shared" });
    await harness.task("two", { contextId: "shared", owner: "bob" });
    expect((await harness.list()).tasks).toHaveLength(1);
    expect((await harness.list({ owner: "bob" })).tasks).toHaveLength(1);
  });
});

test("an agent that is not there, or an extension it requires, is told so", async () => {
  const agent = echo();
  const required = { uri: "urn:example:needed", required: true };
  const harness = await Harness.start({
    agent: { ...agent, profile: { ...agent.profile, extensions: [required] } },
  });
  await expect(harness.send("hello", { agent: "nobody" })).rejects.toMatchObject({ code: "METHOD_NOT_FOUND" });
  await expect(harness.send("hello")).rejects.toMatchObject({ code: "EXTENSION_SUPPORT_REQUIRED" });
});

describe("stopping", () => {
  test("draining refuses new messages, still answers questions, and waits for what runs", async () => {
    const gate = createGate();
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
      }),
    });
    const answer = harness.task("hello");
    await gate.reached;
    await settle();
    let drained = false;
    const draining = harness.engine.drain(60_000).then(() => {
      drained = true;
    });
    await expect(harness.send("late")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(harness.stream("late")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect((await harness.list()).tasks).toHaveLength(1);
    await settle();
    expect(drained).toBe(false);
    gate.open();
    expect((await promptly(answer)).status.state).toBe("TASK_STATE_COMPLETED");
    await promptly(draining);
  });

  test("draining is over at once when nothing runs, and after the grace time when something does", async () => {
    const harness = await Harness.start({
      agents: {
        asking,
        deaf: agentOf(async function* () {
          yield status("TASK_STATE_WORKING");
          await new Promise(() => {});
        }),
      },
    });
    await harness.task("hello", { agent: "asking" });
    await settle();
    await promptly(harness.engine.drain(60_000));
    const busy = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await new Promise(() => {});
      }),
    });
    await busy.begin("hello");
    const draining = busy.engine.drain(1_000);
    await busy.clock.advance(1_000);
    await promptly(draining);
  });

  test("draining waits for what agents do about cancelled tasks, but not longer than the grace time", async () => {
    const gates = [createGate(), createGate()] as const;
    let at = 0;
    const harness = await Harness.start({
      agent: { ...asking, dropped: async () => gates[at++]?.pass() },
    });
    const [first, second] = [await harness.task("one"), await harness.task("two")];
    await settle();
    await promptly(harness.cancel(first.id));
    await gates[0].reached;
    let drained = false;
    const draining = harness.engine.drain(60_000).then(() => {
      drained = true;
    });
    await promptly(harness.cancel(second.id));
    gates[0].open();
    await settle();
    expect(drained).toBe(false);
    gates[1].open();
    await promptly(draining);
    const deaf = await Harness.start({ agent: { ...asking, dropped: () => new Promise(() => {}) } });
    const { id } = await deaf.task("hello");
    await settle();
    await promptly(deaf.cancel(id));
    const late = deaf.engine.drain(1_000);
    await deaf.clock.advance(1_000);
    await promptly(late);
  });

  test("closing tells agents and callers, ends streams, writes nothing, and a successor takes over", async () => {
    let told = false;
    let run = 0;
    const agent = agentOf(
      async function* (turn) {
        yield chunk("a", `run ${++run}`, false);
        if (run > 1) return;
        await aborted(turn);
        told = true;
        yield chunk("a", "after the end");
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent });
    const refused = expect(first.task("hello")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await settle();
    const { id } = (await first.list()).tasks[0] ?? { id: "" };
    const stream = framesOf(await first.subscribe(id));
    const { length } = await first.log(id);
    await promptly(first.engine.close());
    await promptly(Promise.all([refused, stream]));
    await settle();
    expect(told).toBe(true);
    expect(await first.log(id)).toHaveLength(length);
    await first.clock.advance(20_000);
    const second = await Harness.start({ agent, after: first });
    await settle(20);
    expect(await second.get(id)).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ parts: [{ text: "run 2" }] }],
    });
  });

  test("closing while a task is being stored harms nobody", async () => {
    const harness = await Harness.start({ agent: echo() });
    const outcomes = Promise.allSettled(Array.from({ length: 10 }, () => harness.task("hello")));
    const closing = harness.engine.close();
    await promptly(Promise.all([outcomes, closing]));
    for (const outcome of await outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "UNAVAILABLE" });
    }
    expect(harness.logged).not.toContain("The store does not take writes; the runs are given up.");
  });
});
