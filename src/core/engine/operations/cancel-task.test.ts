import { describe, expect, test } from "vitest";
import {
  aborted,
  agentOf,
  chunk,
  createGate,
  echo,
  inputText,
  messageAgent,
  status,
  textDraft,
} from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { logViolations } from "../testing/log-invariants.ts";
import { createStoreGate, FlakyStore } from "../testing/stores.ts";

const CANCELED = { status: { state: "TASK_STATE_CANCELED" } };
const GRACE = 5_000;

/** Stops when it is told to, after a last word. */
const obedient = agentOf(async function* (turn) {
  yield status("TASK_STATE_WORKING");
  await aborted(turn);
  yield chunk("a", "cleaned up", false);
});

const deaf = agentOf(async function* () {
  yield status("TASK_STATE_WORKING");
  await new Promise(() => {});
});

describe("cancelling a task", () => {
  test("at work asks the agent, keeps its last word and ends the task", async () => {
    const harness = await Harness.start({ agent: obedient });
    const waiting = harness.task("hello");
    await settle();
    const { id } = (await harness.list()).tasks[0] ?? { id: "" };
    const cancelled = await promptly(harness.cancel(id));
    expect(cancelled).toMatchObject({ ...CANCELED, artifacts: [{ parts: [{ text: "cleaned up" }] }] });
    expect(await promptly(waiting)).toMatchObject(CANCELED);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  test("takes more than a wake-up, which anyone may have sent", async () => {
    const harness = await Harness.start({ agent: obedient });
    const { id } = await harness.begin("hello");
    harness.store.wakeups.publish({ cancel: [id] });
    await settle();
    expect((await harness.get(id)).status.state).toBe("TASK_STATE_WORKING");
    await harness.store.write([{ kind: "request-cancel", id }]);
    harness.store.wakeups.publish({ cancel: [id] });
    await settle();
    expect(await harness.get(id)).toMatchObject(CANCELED);
  });

  test("of an agent that throws when told ends as cancelled, not failed", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        yield status("TASK_STATE_WORKING");
        await aborted(turn);
        turn.signal.throwIfAborted();
      }),
    });
    const { id } = await harness.begin("hello");
    await settle();
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
  });

  test("of an agent that does not listen cuts it off after the grace time and frees its place", async () => {
    const harness = await Harness.start({ agent: { ...deaf, concurrency: 1 } });
    const { id } = await harness.begin("hello");
    await settle();
    const next = await harness.begin("next");
    const cancelled = harness.cancel(id);
    await harness.clock.advance(GRACE - 1);
    expect((await harness.get(id)).status.state).toBe("TASK_STATE_WORKING");
    expect((await harness.get(next.id)).status.state).toBe("TASK_STATE_SUBMITTED");
    await harness.clock.advance(1);
    expect(await promptly(cancelled)).toMatchObject(CANCELED);
    expect((await harness.get(next.id)).status.state).toBe("TASK_STATE_WORKING");
  });

  test("drops and counts what the agent says after it was cut off", async () => {
    const gate = createGate();
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield chunk("a", "too late", false);
        yield status("TASK_STATE_COMPLETED");
      }),
    });
    const { id } = await harness.begin("hello");
    await settle();
    const cancelled = harness.cancel(id);
    await harness.clock.advance(GRACE);
    await promptly(cancelled);
    const before = (await harness.log(id)).length;
    gate.open();
    await settle();
    expect(await harness.log(id)).toHaveLength(before);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  test("that waits in line ends it without ever starting it", async () => {
    const gate = createGate();
    const told: string[] = [];
    const harness = await Harness.start({
      agent: agentOf(
        async function* (turn) {
          told.push(inputText(turn));
          yield status("TASK_STATE_WORKING");
          if (told.length === 1) await gate.pass();
        },
        { concurrency: 1 },
      ),
    });
    await harness.begin("first");
    await settle();
    const { id } = await harness.begin("second");
    const third = await harness.begin("third");
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
    gate.open();
    await settle(20);
    expect(told).toEqual(["first", "third"]);
    expect((await harness.get(third.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("that waits for its caller ends it, also for its subscribers", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_INPUT_REQUIRED", "?");
      }),
    });
    const { id } = await harness.task("hello");
    await settle();
    expect(harness.engine.load.tasks).toBe(0);
    const frames = framesOf(await harness.subscribe(id));
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
    expect((await promptly(frames)).at(-1)?.event).toMatchObject({ statusUpdate: CANCELED });
    await expect(harness.send("more", { taskId: id })).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });

  test.each(["fail", "resume"] as const)("that asked at once and was parked ends it (%s)", async (onCrash) => {
    const harness = await Harness.start({
      agent: agentOf(
        async function* () {
          yield status("TASK_STATE_INPUT_REQUIRED", "?");
        },
        { onCrash },
      ),
    });
    const { id } = await harness.task("hello");
    await settle();
    expect((await harness.memory.head(id))?.node).toBeUndefined();
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
  });

  test("twice at the same time ends it once, and both are told", async () => {
    const harness = await Harness.start({ agent: obedient });
    const { id } = await harness.begin("hello");
    await settle();
    const both = await promptly(Promise.all([harness.cancel(id), harness.cancel(id), harness.cancel(id)]));
    for (const task of both) expect(task).toMatchObject(CANCELED);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
  });

  test("that was parked tells the agent, with what it remembers", async () => {
    const dropped: unknown[] = [];
    const asking = agentOf(async function* (turn) {
      await turn.memory.set("asked", { of: "whom" });
      yield status("TASK_STATE_INPUT_REQUIRED");
    });
    const harness = await Harness.start({
      agent: {
        ...asking,
        async dropped({ contextId, id, memory }) {
          dropped.push([id, contextId, await memory.get("asked"), await memory.get("never")]);
          throw new Error("whatever");
        },
      },
    });
    const { contextId, id } = await harness.task("hello");
    await settle();
    expect(await promptly(harness.cancel(id))).toMatchObject(CANCELED);
    await settle();
    expect(dropped).toEqual([[id, contextId, { of: "whom" }, undefined]]);
    expect(harness.logged).toContain("An agent could not drop a cancelled task.");
  });

  test("that was parked, twice at the same time, ends it once", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* () {
        yield status("TASK_STATE_INPUT_REQUIRED", "?");
      }),
    });
    const { id } = await harness.task("hello");
    await settle();
    const both = await promptly(Promise.all([harness.cancel(id), harness.cancel(id)]));
    for (const task of both) expect(task).toMatchObject(CANCELED);
    expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
  });

  test("that has ended is refused, as is one that does not exist", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id } = await harness.task("hello");
    await expect(harness.cancel(id)).rejects.toMatchObject({ code: "TASK_NOT_CANCELABLE", metadata: { taskId: id } });
    await expect(harness.cancel("unknown")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  test("whose agent finishes first leaves it finished", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        yield status("TASK_STATE_WORKING");
        await aborted(turn);
        yield status("TASK_STATE_COMPLETED", "done anyway");
      }),
    });
    const { id } = await harness.begin("hello");
    await settle();
    await expect(promptly(harness.cancel(id))).rejects.toMatchObject({ code: "TASK_NOT_CANCELABLE" });
    expect((await harness.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("between two of its turns reaches the turn that follows", async () => {
    const gate = createGate();
    let heedless = false;
    const held = createStoreGate();
    const harness = await Harness.start({
      wrap: held.wrap,
      agent: agentOf(async function* (turn) {
        if (inputText(turn) === "first") {
          await gate.pass();
          return;
        }
        heedless = !turn.signal.aborted;
        yield status("TASK_STATE_WORKING");
        await aborted(turn);
      }),
    });
    const { id } = await harness.begin("first");
    await gate.reached;
    held.gate.hold();
    const second = harness.task("second", { taskId: id });
    await held.gate.waiting();
    gate.open();
    await settle();
    const cancelled = harness.cancel(id);
    await settle();
    held.gate.open();
    expect(await promptly(cancelled)).toMatchObject(CANCELED);
    expect(await promptly(second)).toMatchObject(CANCELED);
    expect(heedless).toBe(false);
  });

  test.each(["fail", "resume"] as const)(
    "that is stored though nobody could tell yet ends it (%s)",
    async (onCrash) => {
      const flaky = new FlakyStore();
      const harness = await Harness.start({ wrap: flaky.wrap, agent: { ...obedient, onCrash } });
      flaky.fail(1, "after");
      const answer = harness.task("hello");
      await settle();
      const { id } = (await harness.list()).tasks[0] ?? { id: "" };
      const both = Promise.all([harness.cancel(id), harness.cancel(id)]);
      both.catch(() => {});
      await harness.clock.advance(GRACE + 1_000);
      for (const task of await promptly(both)) expect(task).toMatchObject(CANCELED);
      expect(await promptly(answer)).toMatchObject(CANCELED);
      expect(logViolations(await harness.log(id), { ended: true })).toEqual([]);
    },
  );

  test("that is about to be taken back for a message comes to an end, as does a subscription", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ wrap: held.wrap, agent: messageAgent() });
    held.gate.hold();
    // With a key the task is written before its run begins.
    const answer = harness.send("hello", { key: "key" });
    await held.gate.waiting();
    await held.gate.step();
    await held.gate.waiting();
    const { id } = (await harness.list()).tasks[0] ?? { id: "" };
    const cancelled = harness.cancel(id).then(
      ({ status: { state } }) => state,
      (error: { code: string }) => error.code,
    );
    const followed = harness.subscribe(id).then(framesOf);
    await settle();
    held.gate.open();
    await promptly(answer);
    await harness.clock.advance(4 * GRACE);
    expect(await promptly(cancelled)).toBe("TASK_NOT_FOUND");
    await promptly(followed);
  });

  test("whose agent has answered with a message before the task was written ends it nevertheless", async () => {
    const held = createStoreGate();
    const gate = createGate();
    const harness = await Harness.start({
      wrap: held.wrap,
      agent: agentOf(
        // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
        async function* () {
          await gate.pass();
          return textDraft("here");
        },
        { onCrash: "resume" },
      ),
    });
    held.gate.hold();
    const answer = harness.task("hello", { chosenId: "mine" });
    await held.gate.waiting();
    gate.open();
    await settle();
    const cancelled = harness.cancel("mine");
    await settle();
    held.gate.open();
    expect(await promptly(cancelled)).toMatchObject(CANCELED);
    expect(await promptly(answer)).toMatchObject(CANCELED);
    expect(logViolations(await harness.log("mine"), { ended: true })).toEqual([]);
  });
});
