import { describe, expect, test } from "vitest";
import { agentOf, createGate, echo, messageAgent, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { createStoreGate } from "../testing/stores.ts";

const asking = () =>
  agentOf(async function* (turn) {
    if (turn.history.length === 0) yield status("TASK_STATE_INPUT_REQUIRED", "Which one?");
  });

describe("an id the caller chose", () => {
  test("is the task's, and the same id again continues the task", async () => {
    const harness = await Harness.start({ agent: asking() });
    const first = await promptly(harness.task("a", { chosenId: "mine", contextId: "session" }));
    expect(first).toMatchObject({ id: "mine", contextId: "session", status: { state: "TASK_STATE_INPUT_REQUIRED" } });
    const second = await promptly(harness.task("b", { chosenId: "mine", contextId: "session" }));
    expect(second).toMatchObject({ id: "mine", status: { state: "TASK_STATE_COMPLETED" } });
    expect((await harness.get("mine")).history?.map(({ parts }) => parts[0])).toEqual([
      { text: "a" },
      { text: "Which one?" },
      { text: "b" },
    ]);
  });

  test("is written before the run begins: another node may be writing it, too", async () => {
    const held = createStoreGate();
    let begun = 0;
    const agent = agentOf(async function* () {
      begun++;
      yield status("TASK_STATE_WORKING");
    });
    const harness = await Harness.start({ agent, wrap: held.wrap });
    held.gate.hold();
    const answer = harness.task("a", { chosenId: "mine" });
    await held.gate.waiting();
    await settle();
    expect(begun).toBe(0);
    held.gate.open();
    expect((await promptly(answer)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(begun).toBe(1);
  });

  test("makes one task when it comes twice at the same time", async () => {
    const gate = createGate();
    const seen: string[] = [];
    const agent = agentOf(async function* (turn) {
      seen.push(...turn.message.parts.flatMap((part) => ("text" in part ? [part.text] : [])));
      await gate.pass();
    });
    const harness = await Harness.start({ agent });
    const both = Promise.all([harness.task("one", { chosenId: "x" }), harness.task("two", { chosenId: "x" })]);
    await settle();
    gate.open();
    const [one, two] = await promptly(both);
    expect([one.id, two.id]).toEqual(["x", "x"]);
    expect(seen).toEqual(["one", "two"]);
    expect((await harness.list()).totalSize).toBe(1);
  });

  test("that is another owner's or another agent's is refused, and nothing changes", async () => {
    const harness = await Harness.start({ agents: { agent: echo(), other: echo() } });
    const before = await harness.task("hello", { chosenId: "taken", owner: "alice" });
    const refused = { code: "INVALID_PARAMS", violations: [{ field: "id" }] };
    await expect(harness.task("hello", { chosenId: "taken", owner: "bob" })).rejects.toMatchObject(refused);
    await expect(harness.task("hello", { chosenId: "taken", owner: "alice", agent: "other" })).rejects.toMatchObject(
      refused,
    );
    expect(await harness.get("taken", { owner: "alice" })).toEqual(before);
  });

  test("of a task that has ended is refused as any message to it is", async () => {
    const harness = await Harness.start({ agent: echo() });
    await harness.task("hello", { chosenId: "done" });
    await expect(harness.task("again", { chosenId: "done" })).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });

  test("must be there and not too long", async () => {
    const harness = await Harness.start({ agent: echo(), limits: { id: 10 } });
    await expect(harness.task("hello", { chosenId: "" })).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    await expect(harness.task("hello", { chosenId: "x".repeat(11) })).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    expect((await harness.list()).totalSize).toBe(0);
  });

  test("of another session is refused", async () => {
    const harness = await Harness.start({ agent: asking() });
    await harness.task("a", { chosenId: "mine", contextId: "one" });
    await expect(harness.task("b", { chosenId: "mine", contextId: "two" })).rejects.toMatchObject({
      code: "INVALID_PARAMS",
    });
  });

  test("is told, with the dialect it came over, to its owner alone", async () => {
    const harness = await Harness.start({ agent: echo() });
    await harness.task("hello", { chosenId: "mine", owner: "alice" });
    const origin = (owner: string) => harness.engine.findTaskDialect("agent", "mine", { owner, authenticated: true });
    expect(await origin("alice")).toBe("test");
    expect(await origin("bob")).toBeUndefined();
    expect(
      await harness.engine.findTaskDialect("agent", "none", { owner: "alice", authenticated: true }),
    ).toBeUndefined();
  });
});

describe("a caller who knows tasks only", () => {
  test("gets a task where an agent answers with a message", async () => {
    const harness = await Harness.start({ agent: messageAgent() });
    const task = await promptly(harness.task("How are you?", { alwaysTask: true }));
    expect(task.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "You said How are you?." }] },
    });
    expect(await harness.get(task.id)).toEqual(task);
  });

  test("gets a stream of one", async () => {
    const harness = await Harness.start({ agent: messageAgent() });
    const frames = await promptly(harness.stream("How are you?", { alwaysTask: true }).then(framesOf));
    expect(frames.map(({ event }) => Object.keys(event)[0])).toEqual(["task", "statusUpdate"]);
  });
});
