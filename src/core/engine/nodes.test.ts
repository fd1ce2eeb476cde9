import { describe, expect, test } from "vitest";
import type { Message } from "../model/message.ts";
import type { Task } from "../model/task.ts";
import type { TaskStore, Write } from "../store/contract.ts";
import type { Agent } from "./agent.ts";
import { aborted, agentOf, chunk, createGate, inputText, messageAgent, status, textDraft } from "./testing/agents.ts";
import { promptly, settle } from "./testing/fake-clock.ts";
import { createSharedMemory, createSharedSqlite, framesOf, Harness, type HarnessOptions } from "./testing/harness.ts";
import { logViolations, snapshotViolations, viewViolations } from "./testing/log-invariants.ts";
import { Receivers } from "./testing/receivers.ts";
import { createStoreGate, overrideStore, unreliableWakeups } from "./testing/stores.ts";

const GRACE = 5_000;
const LEASE = 15_000;
const CANCELED = { status: { state: "TASK_STATE_CANCELED" } };
const COMPLETED = { status: { state: "TASK_STATE_COMPLETED" } };

const textsOf = (task: Task) =>
  (task.history ?? []).filter(({ role }) => role === "ROLE_USER").map((message: Message) => message.parts[0]);

/** Notes what each node was given; the first message waits at a gate. */
function gated(end: "complete" | "ask" = "complete") {
  const gate = createGate();
  const runs: string[] = [];
  const agent = (node: string): Agent =>
    agentOf(async function* (turn) {
      runs.push(`${node}: ${inputText(turn)}`);
      yield status("TASK_STATE_WORKING");
      yield chunk(`answer-${inputText(turn)}`, inputText(turn), false);
      if (inputText(turn) !== "first") return;
      await gate.pass();
      if (end === "ask") {
        yield status("TASK_STATE_INPUT_REQUIRED", "?");
        // So that the question and the end of the run are written apart.
        await settle(2);
      }
    });
  return { gate, runs, agent };
}

const obedient = agentOf(async function* (turn) {
  yield status("TASK_STATE_WORKING");
  await aborted(turn);
  yield chunk("a", "cleaned up", false);
});

const deaf = agentOf(async function* () {
  yield status("TASK_STATE_WORKING");
  await new Promise(() => {});
});

const lost = (inner: TaskStore) => unreliableWakeups(inner, ["lost"]);

describe.each([
  ["memory", async () => createSharedMemory()],
  ["sqlite", createSharedSqlite],
] as const)("nodes that share a store (%s)", (_name, createShared) => {
  async function twoNodes(here: HarnessOptions, there: HarnessOptions = here): Promise<[Harness, Harness]> {
    const first = await Harness.start({ ...here, shared: await createShared() });
    return [first, await Harness.start({ ...there, after: first })];
  }

  async function expectWhole(node: Harness, id: string): Promise<void> {
    const log = await node.log(id);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(snapshotViolations(log, await node.stored(id))).toEqual([]);
  }

  describe("a message for a task that another node runs", () => {
    test("is answered by that node's next turn, and its caller waits for it", async () => {
      const { gate, runs, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const first = here.task("first");
      await gate.reached;
      await settle();
      const { id } = (await here.list()).tasks[0] as Task;
      const second = there.task("second", { taskId: id });
      await settle();
      expect(textsOf(await here.get(id))).toEqual([{ text: "first" }, { text: "second" }]);
      gate.open();
      const task = await promptly(second);
      expect(task).toMatchObject(COMPLETED);
      expect(textsOf(task)).toEqual([{ text: "first" }, { text: "second" }]);
      expect(await promptly(first)).toMatchObject(COMPLETED);
      expect(runs).toEqual(["here: first", "here: second"]);
      await expectWhole(here, id);
    });

    test("is streamed from the task as the message found it", async () => {
      const { gate, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const frames = framesOf(await promptly(there.stream("second", { taskId: id })));
      gate.open();
      const [snapshot, ...rest] = await promptly(frames);
      const found = snapshot?.event;
      expect(found !== undefined && "task" in found && textsOf(found.task)).toEqual([
        { text: "first" },
        { text: "second" },
      ]);
      const log = await there.log(id);
      expect(viewViolations(rest, log, snapshot?.number ?? 0)).toEqual([]);
      expect(rest.at(-1)).toMatchObject({ number: log.length, event: { statusUpdate: COMPLETED } });
    });

    test("is returned at once to a caller that does not wait", async () => {
      const { gate, runs, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const task = await promptly(there.begin("second", { taskId: id }));
      expect(textsOf(task)).toEqual([{ text: "first" }, { text: "second" }]);
      gate.open();
      await settle(20);
      expect(runs).toEqual(["here: first", "here: second"]);
      await expectWhole(here, id);
    });

    test.each(["complete", "ask"] as const)("is answered though the run just wants to %s", async (end) => {
      const { gate, runs, agent } = gated(end);
      const held = createStoreGate();
      const [here, there] = await twoNodes({ agent: agent("here"), wrap: held.wrap }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      held.gate.hold();
      gate.open();
      await held.gate.waiting();
      const second = there.task("second", { taskId: id });
      await settle();
      held.gate.open();
      // The question of the first turn was written after the message, and is its caller's answer.
      expect(await promptly(second)).toMatchObject(end === "complete" ? COMPLETED : {});
      await settle(20);
      expect(runs).toEqual(["here: first", "here: second"]);
      await expectWhole(there, id);
    });

    test("is answered when that node gives the task up meanwhile, as a first attempt", async () => {
      const { gate, runs, agent } = gated("ask");
      const holding = createGate();
      let heldUp = false;
      const wrap = (inner: TaskStore) =>
        overrideStore(inner, {
          async write(writes: readonly Write[]) {
            if (!heldUp && writes.some(({ kind, ...write }) => kind === "append" && !("fence" in write))) {
              heldUp = true;
              await holding.pass();
            }
            return inner.write(writes);
          },
        });
      const held = createStoreGate();
      const [here, there] = await twoNodes({ agent: agent("here"), wrap: held.wrap }, { agent: agent("there"), wrap });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      held.gate.hold();
      gate.open();
      // The question is written, but not yet that the node gives the task up.
      await held.gate.waiting();
      await held.gate.step();
      await held.gate.waiting();
      const second = there.task("second", { taskId: id });
      await promptly(holding.reached);
      held.gate.open();
      await settle();
      expect(await there.memory.head(id)).toMatchObject({ node: undefined, attempt: 1 });
      holding.open();
      expect(await promptly(second)).toMatchObject(COMPLETED);
      expect(runs).toHaveLength(2);
      await expectWhole(there, id);
    });

    test("keeps a task that its agent answers with a plain message", async () => {
      const gate = createGate();
      const replying = agentOf(
        // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
        async function* (turn) {
          if (inputText(turn) === "first") await gate.pass();
          return textDraft(`re ${inputText(turn)}`);
        },
      );
      const [here, there] = await twoNodes({ agent: replying, wrap: lost }, { agent: replying });
      const first = here.task("first");
      await gate.reached;
      await settle();
      const { id } = (await there.list()).tasks[0] as Task;
      const second = there.task("second", { taskId: id });
      await settle();
      gate.open();
      await here.clock.advance(2_000);
      expect(await promptly(first)).toMatchObject(COMPLETED);
      const task = await promptly(second);
      expect(textsOf(task)).toEqual([{ text: "first" }, { text: "second" }]);
      expect(task.history?.map(({ parts }) => parts[0])).toContainEqual({ text: "re first" });
      expect(task.status.message?.parts).toEqual([{ text: "re second" }]);
      await expectWhole(here, id);
    });

    test("is answered, only later, when every wake-up is lost", async () => {
      const { gate, runs, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here"), wrap: lost }, { agent: agent("there"), wrap: lost });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const second = there.task("second", { taskId: id });
      await here.clock.advance(LEASE / 3);
      expect(textsOf(await here.get(id))).toEqual([{ text: "first" }, { text: "second" }]);
      gate.open();
      await here.clock.advance(2_000);
      expect(await promptly(second)).toMatchObject(COMPLETED);
      expect(runs).toEqual(["here: first", "here: second"]);
    });

    test("is refused once the task has ended, and for a task of another owner", async () => {
      const { gate, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const stranger = there.send("second", { taskId: id, owner: "mallory" });
      await expect(stranger).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
      gate.open();
      await settle();
      const late = there.send("second", { taskId: id });
      await expect(late).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
    });
  });

  describe("a repeated send", () => {
    test("is recognised by the other node, for a new task and for a message that was left there", async () => {
      const { gate, runs, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const first = here.task("first", { key: "one", messageId: "m1" });
      await gate.reached;
      await settle();
      const again = there.task("first", { key: "one", messageId: "m1" });
      const { id } = (await there.list()).tasks[0] as Task;
      const follow = { taskId: id, key: "two", messageId: "m2" };
      const sent = [there.task("second", follow), here.task("second", follow), there.task("second", follow)];
      await settle();
      gate.open();
      for (const task of await promptly(Promise.all([first, again, ...sent]))) {
        expect(task.id).toBe(id);
        expect(textsOf(task)).toEqual([{ text: "first" }, { text: "second" }]);
      }
      expect(runs).toEqual(["here: first", "here: second"]);
      await expect(there.send("other", { key: "one" })).rejects.toMatchObject({ code: "IDEMPOTENCY_CONFLICT" });
    });

    test.each(["blocking", "streaming"] as const)("gets the plain message of the other node (%s)", async (how) => {
      const gate = createGate();
      const slow = agentOf(
        // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
        async function* () {
          await gate.pass();
          return textDraft("plain");
        },
      );
      const [here, there] = await twoNodes({ agent: slow }, { agent: messageAgent() });
      const first = here.send("hello", { key: "k", messageId: "m" });
      await gate.reached;
      await settle();
      const same = { key: "k", messageId: "m" };
      const streamed = async () => (await framesOf(await there.stream("hello", same)))[0]?.event;
      const again: Promise<unknown> = how === "blocking" ? there.send("hello", same) : streamed();
      await settle();
      gate.open();
      expect(await promptly(first)).toMatchObject({ message: { parts: [{ text: "plain" }] } });
      expect(await promptly(again)).toMatchObject({ message: { parts: [{ text: "plain" }] } });
    });
  });

  describe("a cancellation through another node", () => {
    test("reaches the run at once and keeps what the agent still wrote", async () => {
      const [here, there] = await twoNodes({ agent: obedient });
      const waiting = here.task("hello");
      await settle();
      const { id } = (await here.list()).tasks[0] as Task;
      const cancelled = await promptly(there.cancel(id));
      expect(cancelled).toMatchObject({ ...CANCELED, artifacts: [{ parts: [{ text: "cleaned up" }] }] });
      expect(await promptly(waiting)).toMatchObject(CANCELED);
      await expectWhole(there, id);
    });

    test("of an agent that ignores it ends the task after the grace time", async () => {
      const [here, there] = await twoNodes({ agent: deaf });
      const { id } = await here.begin("hello");
      await settle();
      const cancelled = there.cancel(id);
      await here.clock.advance(GRACE);
      expect(await promptly(cancelled)).toMatchObject(CANCELED);
      expect(here.engine.load.tasks).toBe(0);
      await expectWhole(there, id);
    });

    test("takes the task from a node that does nothing, which then writes no more", async () => {
      const gate = createGate();
      const talking = agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield chunk("a", "from the grave", false);
      });
      const never = { leaseMs: Number.MAX_SAFE_INTEGER };
      const [here, there] = await twoNodes({ agent: talking, wrap: lost, times: never }, { agent: talking });
      const waiting = here.task("hello");
      await gate.reached;
      await settle();
      const { id } = (await here.list()).tasks[0] as Task;
      await there.memory.heartbeat((await there.memory.head(id))?.node ?? "", 60_000);
      const cancelled = there.cancel(id);
      await here.clock.advance(GRACE);
      expect((await there.get(id)).status.state).toBe("TASK_STATE_WORKING");
      await here.clock.advance(1_000);
      expect(await promptly(cancelled)).toMatchObject(CANCELED);
      expect((await there.memory.head(id))?.fence).toBe(2);
      gate.open();
      expect(await promptly(waiting)).toMatchObject(CANCELED);
      expect(JSON.stringify(await there.log(id))).not.toContain("grave");
      expect(here.engine.load.tasks).toBe(0);
      await expectWhole(there, id);
    });

    test("of a node that died ends the task before its lease does", async () => {
      const [here, there] = await twoNodes({ agent: deaf });
      const { id } = await here.begin("hello");
      await settle();
      here.crash();
      const cancelled = there.cancel(id);
      await there.clock.advance(GRACE + 1_000);
      expect(await promptly(cancelled)).toMatchObject(CANCELED);
      await expectWhole(there, id);
    });

    test("fails when the task completes first", async () => {
      const { gate, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here"), wrap: lost }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const cancelled = there.cancel(id).catch((error: unknown) => error);
      await settle();
      gate.open();
      expect(await promptly(cancelled)).toMatchObject({ code: "TASK_NOT_CANCELABLE" });
      expect(await here.get(id)).toMatchObject(COMPLETED);
    });

    test("through two nodes at once succeeds for both", async () => {
      const [here, there] = await twoNodes({ agent: deaf });
      const third = await Harness.start({ agent: deaf, after: here });
      const { id } = await here.begin("hello");
      await settle();
      here.crash();
      const cancelled = Promise.all([there.cancel(id), third.cancel(id)]);
      await there.clock.advance(GRACE + 2_000);
      for (const task of await promptly(cancelled)) expect(task).toMatchObject(CANCELED);
      await expectWhole(there, id);
    });
  });

  describe("a subscriber on another node", () => {
    test("sees the task and each event once, from any number", async () => {
      const { gate, agent } = gated();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const whole = framesOf(await there.subscribe(id));
      const replayed = framesOf(await there.subscribe(id, 1, { replay: true }));
      gate.open();
      const log = [...(await promptly(replayed))];
      expect(viewViolations(log, await here.log(id), 1)).toEqual([]);
      expect(log.at(-1)?.number).toBe((await here.log(id)).length);
      const [snapshot, ...rest] = await promptly(whole);
      expect(viewViolations(rest, await here.log(id), snapshot?.number ?? 0)).toEqual([]);
    });
  });

  describe("a webhook registered through another node", () => {
    test.each(["arrive", "are lost"])("is sent every event once when wake-ups %s", async (fate) => {
      const { gate, agent } = gated();
      const receivers = new Receivers();
      const wrap = fate === "arrive" ? (inner: TaskStore) => inner : lost;
      const options = { pushSender: receivers, wrap };
      const [here, there] = await twoNodes({ agent: agent("here"), ...options }, { agent: agent("there"), ...options });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const before = (await here.log(id)).length;
      const config = { url: "https://hook.example/1" };
      const call = { caller: { owner: "alice", authenticated: true }, tenant: "", extensions: [], dialect: "test" };
      await there.engine.agent("agent").dispatch({ kind: "push-create", taskId: id, config }, call);
      const second = there.task("second", { taskId: id });
      await settle();
      gate.open();
      if (fate === "arrive") await settle(20);
      else await here.clock.advance(LEASE);
      await promptly(second);
      const { length } = await here.log(id);
      const due = Array.from({ length: length - before }, (_, index) => before + 1 + index);
      expect(receivers.numbers()).toEqual(due);
    });
  });

  describe("a question asked on one node", () => {
    test("is answered on another", async () => {
      const { gate, runs, agent } = gated("ask");
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const first = here.task("first");
      await gate.reached;
      gate.open();
      const { id } = await promptly(first);
      await settle();
      expect(await promptly(there.task("second", { taskId: id }))).toMatchObject(COMPLETED);
      expect(runs).toEqual(["here: first", "there: second"]);
      await expectWhole(here, id);
    });

    test("and answered on both at once gets a turn for each", async () => {
      const { gate, runs, agent } = gated("ask");
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const first = here.task("first");
      await gate.reached;
      gate.open();
      const { id } = await promptly(first);
      await settle();
      const answers = [here.task("second", { taskId: id }), there.task("third", { taskId: id })];
      for (const task of await promptly(Promise.all(answers))) expect(task).toMatchObject(COMPLETED);
      expect(textsOf(await here.get(id))).toHaveLength(3);
      expect(runs.map((run) => run.split(" ")[1]).sort()).toEqual(["first", "second", "third"]);
      await expectWhole(here, id);
    });
  });

  test("a run whose write was made and whose answer was lost does not go on with the lease of a node that took its task", async () => {
    const gate = createGate();
    const agent = agentOf(async function* (turn) {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
      yield chunk("a", "made", false);
      await settle(2);
      await aborted(turn);
      yield chunk("a", "late");
    });
    let isLost = false;
    const wrap = (inner: TaskStore) =>
      overrideStore(inner, {
        write: async (writes) => {
          const results = await inner.write(writes);
          const [write] = writes;
          const isIt = write?.kind === "append" && write.entries.some(({ json }) => json.includes("made"));
          if (isLost || !isIt) return results;
          isLost = true;
          const { id, fence = 0, expect: before, entries } = write;
          const number = before + entries.length;
          await inner.write([{ kind: "append", id, expect: number, fence, entries: [], lease: "release" }]);
          await inner.heartbeat("another", LEASE);
          await inner.claim("another", ["agent"], 1);
          throw new Error("The answer was lost.");
        },
      });
    const here = await Harness.start({ agent, wrap, shared: await createShared() });
    const { id } = await here.begin("first");
    await gate.reached;
    gate.open();
    await settle();
    await here.clock.advance(1_000);
    await settle(20);
    expect(isLost).toBe(true);
    expect(here.counts.runs_fenced).toBe(1);
    expect(await here.memory.head(id)).toMatchObject({ node: "another", fence: 2 });
    expect((await here.log(id)).filter(({ json }) => json.includes("late"))).toEqual([]);
  });

  test("a task that no node holds is taken up at a wake-up, by one of them", async () => {
    const { gate, runs, agent } = gated();
    const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
    const { id } = await here.begin("first");
    await gate.reached;
    await settle();
    here.crash();
    const { fence = 0, number = 0, node = "" } = (await there.memory.head(id)) ?? {};
    await there.memory.heartbeat(node, -1);
    there.store.wakeups.publish({ work: true });
    await settle();
    expect(await there.memory.head(id)).toMatchObject({ fence: fence + 1 });
    expect(number).toBeGreaterThan(0);
    expect(runs).toEqual(["here: first"]);
    expect((await there.get(id)).status.state).toBe("TASK_STATE_FAILED");
  });
});
