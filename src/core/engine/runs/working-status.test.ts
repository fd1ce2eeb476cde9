import { describe, expect, test } from "vitest";
import type { LogEntry } from "../../model/event.ts";
import { agentOf, chunk, createGate, messageAgent, status, textDraft } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { logViolations } from "../testing/log-invariants.ts";
import { createStoreGate } from "../testing/stores.ts";

const POLICIES = ["fail", "resume"] as const;

/** A state without `TASK_STATE_`, or an artifact's text in quotes. */
function wordsOf(log: readonly LogEntry[]): string[] {
  return log.map(({ event }) => {
    if ("artifactUpdate" in event) return JSON.stringify(event.artifactUpdate.artifact.parts);
    const { state } = "task" in event ? event.task.status : event.statusUpdate.status;
    return state.replace("TASK_STATE_", "").toLowerCase();
  });
}

const ONE = '[{"text":"one"}]';

/** Yields nothing until the gate is open. */
function silent(gate: ReturnType<typeof createGate>, onCrash: (typeof POLICIES)[number] = "fail") {
  return agentOf(
    async function* () {
      await gate.pass();
      yield chunk("a", "one", false);
    },
    { onCrash },
  );
}

describe.each(POLICIES)("a run whose crash policy is %s", (onCrash) => {
  test("works from its first artifact on, which is in the same write", async () => {
    const held = createStoreGate();
    const agent = agentOf(
      async function* () {
        yield chunk("a", "one", false);
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent, wrap: held.wrap });
    const { id } = await promptly(harness.task("hello"));
    const log = await harness.log(id);
    expect(wordsOf(log)).toEqual(["submitted", "working", ONE, "completed"]);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(held.gate.groups).toHaveLength(1);
  });

  test("whose first event is a status has that one and no other", async () => {
    const agent = agentOf(
      async function* (turn) {
        yield status("TASK_STATE_WORKING", "Thinking");
        yield chunk("a", "one", false);
        if (turn.history.length === 0) yield status("TASK_STATE_INPUT_REQUIRED", "Which?");
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const { id } = await promptly(harness.task("hello"));
    await promptly(harness.task("that", { taskId: id }));
    expect(wordsOf(await harness.log(id))).toEqual([
      ...["submitted", "working", ONE, "input_required"],
      // The first of these brought the message.
      ...["working", "working", ONE, "completed"],
    ]);
  });

  test.each(["TASK_STATE_COMPLETED", "TASK_STATE_REJECTED", "TASK_STATE_INPUT_REQUIRED"] as const)(
    "that is only %s has never worked",
    async (state) => {
      const agent = agentOf(
        async function* () {
          yield status(state, "There.");
        },
        { onCrash },
      );
      const harness = await Harness.start({ agent });
      for (const returnImmediately of [false, true]) {
        const { id } = await promptly(returnImmediately ? harness.begin("hello") : harness.task("hello"));
        await harness.clock.advance(2_000);
        expect(wordsOf(await harness.log(id))).toEqual(["submitted", state.slice("TASK_STATE_".length).toLowerCase()]);
      }
    },
  );

  test("that answers with a message writes nothing, unless a key has to be known first", async () => {
    const held = createStoreGate();
    const harness = await Harness.start({ agent: messageAgent({ onCrash }), wrap: held.wrap });
    const kinds = () => held.gate.groups.flat().map(({ kind }) => kind);
    expect(await promptly(harness.send("hello"))).toHaveProperty("message");
    await harness.clock.advance(2_000);
    expect(kinds()).toEqual([]);
    expect(await promptly(harness.send("hello", { key: "key" }))).toHaveProperty("message");
    expect(kinds()).toEqual(["submit", "discard"]);
  });

  test("that yields nothing is seen to work, at once where its task is known", async () => {
    const gate = createGate();
    const harness = await Harness.start({ agent: silent(gate, onCrash) });
    const { id } = await promptly(harness.begin("hello"));
    await gate.reached;
    await settle();
    expect((await harness.get(id)).status.state).toBe("TASK_STATE_WORKING");
    await harness.clock.advance(2_000);
    gate.open();
    await settle();
    expect(wordsOf(await harness.log(id))).toEqual(["submitted", "working", ONE, "completed"]);
  });

  test("that yields nothing for a while is seen to work where no one knows its task yet", async () => {
    const gate = createGate();
    const harness = await Harness.start({ agent: silent(gate, onCrash) });
    const sent = harness.task("hello");
    await gate.reached;
    const stateListed = async () => (await harness.list()).tasks[0]?.status.state;
    await harness.clock.advance(900);
    expect(await stateListed()).toBe("TASK_STATE_SUBMITTED");
    await harness.clock.advance(200);
    expect(await stateListed()).toBe("TASK_STATE_WORKING");
    gate.open();
    const { id } = await promptly(sent);
    expect(wordsOf(await harness.log(id))).toEqual(["submitted", "working", ONE, "completed"]);
  });

  test("that answers late with a message still leaves no task", async () => {
    const gate = createGate();
    const agent = agentOf(
      // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
      async function* () {
        await gate.pass();
        return textDraft("at last");
      },
      { onCrash },
    );
    const harness = await Harness.start({ agent });
    const sent = harness.send("hello");
    await gate.reached;
    await harness.clock.advance(5_000);
    gate.open();
    expect(await promptly(sent)).toHaveProperty("message");
    expect((await harness.memory.stats()).tasks).toBe(0);
  });
});

test("a run that reports late that it works, and nothing else, does not repeat it", async () => {
  const gate = createGate();
  const agent = agentOf(async function* () {
    await gate.pass();
    yield status("TASK_STATE_WORKING");
    yield status("TASK_STATE_WORKING", "Thinking");
  });
  const harness = await Harness.start({ agent });
  const stream = harness.stream("hello");
  await gate.reached;
  await harness.clock.advance(1_000);
  const frames = framesOf(await promptly(stream));
  gate.open();
  const events = (await promptly(frames)).map(({ event }) => event);
  expect(events).toMatchObject([
    { task: { status: { state: "TASK_STATE_SUBMITTED" } } },
    { statusUpdate: { status: { state: "TASK_STATE_WORKING" } } },
    { statusUpdate: { status: { state: "TASK_STATE_WORKING", message: textDraft("Thinking") } } },
    { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } },
  ]);
});

test("a run that waits for its agent does not work", async () => {
  const gate = createGate();
  const agent = { ...silent(gate), concurrency: 1 };
  const harness = await Harness.start({ agent });
  const first = await promptly(harness.begin("first"));
  const second = await promptly(harness.begin("second"));
  await gate.reached;
  await harness.clock.advance(5_000);
  expect((await harness.get(first.id)).status.state).toBe("TASK_STATE_WORKING");
  expect((await harness.get(second.id)).status.state).toBe("TASK_STATE_SUBMITTED");
  gate.open();
  await settle();
  expect(wordsOf(await harness.log(second.id))).toEqual(["submitted", "working", ONE, "completed"]);
});

test("a run that waited when its process died works when another takes it up", async () => {
  const gate = createGate();
  const agent = { ...silent(gate), concurrency: 1 };
  const harness = await Harness.start({ agent });
  await promptly(harness.begin("first"));
  const { id } = await promptly(harness.begin("second"));
  await gate.reached;
  harness.crash();
  const later = createGate();
  const next = await Harness.start({ agent: silent(later), after: harness });
  await next.clock.advance(30_000);
  await later.reached;
  expect((await next.get(id)).status.state).toBe("TASK_STATE_WORKING");
  later.open();
  await settle();
  expect(wordsOf(await next.log(id))).toEqual(["submitted", "working", ONE, "completed"]);
});

test("a run that is resumed after a crash works, and reports it once", async () => {
  const gate = createGate();
  const harness = await Harness.start({ agent: silent(gate, "resume") });
  const { id } = await promptly(harness.begin("hello"));
  await gate.reached;
  harness.crash();
  const later = createGate();
  const next = await Harness.start({ agent: silent(later, "resume"), after: harness });
  await next.clock.advance(30_000);
  await later.reached;
  expect((await next.get(id)).status.state).toBe("TASK_STATE_WORKING");
  later.open();
  await settle();
  expect(wordsOf(await next.log(id))).toEqual(["submitted", "working", "working", ONE, "completed"]);
});
