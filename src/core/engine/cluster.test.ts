import { describe, expect, test } from "vitest";
import { statusText } from "../model/status-texts.ts";
import type { Task } from "../model/task.ts";
import type { Append, TaskStore, WriteResult } from "../store/contract.ts";
import type { Agent, Turn } from "./agent.ts";
import { aborted, agentOf, chunk, createGate, echo, inputText, messageAgent, status } from "./testing/agents.ts";
import { promptly, settle } from "./testing/fake-clock.ts";
import { createSharedMemory, createSharedSqlite, framesOf, Harness, type HarnessOptions } from "./testing/harness.ts";
import { logViolations, snapshotViolations, viewViolations } from "./testing/log-invariants.ts";
import { createStoreGate, overrideStore, SharedStoreAccess } from "./testing/stores.ts";

const LEASE = 15_000;
const COMPLETED = { status: { state: "TASK_STATE_COMPLETED" } };
const FAILED = { status: { state: "TASK_STATE_FAILED" } };
const UNAVAILABLE = { code: "UNAVAILABLE" };

const share = (inner: Parameters<SharedStoreAccess["wrap"]>[0]) => ({ ...inner, shared: true });

/** Works until it is let finish, and notes its runs and how they were aborted. */
function longRun(more: Partial<Agent> = {}) {
  const runs: string[] = [];
  const aborts: unknown[] = [];
  const gate = createGate();
  const agent = (node: string): Agent =>
    agentOf(
      async function* (turn: Turn) {
        runs.push(`${node}: ${inputText(turn)} (${turn.attempt})`);
        yield status("TASK_STATE_WORKING");
        yield chunk("a", `by ${node} `, false);
        await Promise.race([gate.pass(), aborted(turn)]);
        if (turn.signal.aborted) aborts.push(turn.signal.reason);
        yield chunk("a", `finished by ${node}`);
      },
      { onCrash: "resume", ...more },
    );
  return { runs, aborts, gate, agent };
}

const textsOf = ({ status: { message } }: Task) => message?.parts;

describe.each([
  ["memory", async () => createSharedMemory()],
  ["sqlite", createSharedSqlite],
] as const)("nodes of one store that they share (%s)", (_name, createShared) => {
  async function twoNodes(here: HarnessOptions, there: HarnessOptions = here): Promise<[Harness, Harness]> {
    const first = await Harness.start({ wrap: share, ...here, shared: await createShared() });
    return [first, await Harness.start({ wrap: share, ...there, after: first })];
  }

  async function expectWhole(node: Harness, id: string): Promise<void> {
    const log = await node.log(id);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(snapshotViolations(log, await node.stored(id))).toEqual([]);
  }

  describe("a node that does not reach the store", () => {
    test.each(["refuses", "hangs"] as const)(
      "for the lease gives up its runs before others begin them (%s)",
      async (how) => {
        const { runs, aborts, gate, agent } = longRun();
        const access = new SharedStoreAccess();
        const [here, there] = await twoNodes({ agent: agent("here"), wrap: access.wrap }, { agent: agent("there") });
        const waiting = here.task("first").catch((error: unknown) => error);
        await gate.reached;
        await settle();
        const { id } = (await there.list()).tasks[0] as Task;
        access.leave(how);
        await here.clock.advance(LEASE - 1);
        expect(aborts).toEqual([]);
        await here.clock.advance(1);
        expect(aborts).toEqual([expect.objectContaining(UNAVAILABLE)]);
        expect(await promptly(waiting)).toMatchObject(UNAVAILABLE);
        await expect(here.send("second")).rejects.toMatchObject(UNAVAILABLE);
        expect(here.engine.cluster).toEqual({ isShared: true, isCutOff: true });
        await here.clock.advance(LEASE / 2);
        expect(runs).toEqual(["here: first (1)", "there: first (2)"]);
        access.comeBack();
        gate.open();
        await here.clock.advance(LEASE);
        expect(await there.get(id)).toMatchObject({
          ...COMPLETED,
          artifacts: [{ parts: [{ text: "by there finished by there" }] }],
        });
        expect(runs).toHaveLength(2);
        await expectWhole(there, id);
        if (how === "refuses") expect(await here.task("third")).toMatchObject(COMPLETED);
      },
    );

    test("and was not missed takes its runs up again itself", async () => {
      const { runs, gate, agent } = longRun();
      const access = new SharedStoreAccess();
      const here = await Harness.start({ agent: agent("here"), wrap: access.wrap, shared: await createShared() });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      access.leave();
      await here.clock.advance(2 * LEASE);
      access.comeBack();
      gate.open();
      await here.clock.advance(LEASE);
      expect(runs).toEqual(["here: first (1)", "here: first (2)"]);
      expect(await here.get(id)).toMatchObject(COMPLETED);
      await expectWhole(here, id);
    });

    test("and finds an older state of it takes its runs up again from there", async () => {
      const { runs, gate, agent } = longRun();
      let isForgetting = false;
      const forget = (inner: TaskStore) =>
        overrideStore(share(inner), {
          // As with an asynchronous standby that takes over: what was acknowledged of late is not there.
          write: async (writes) =>
            isForgetting ? writes.map((write) => forgotten(write as Append)) : inner.write(writes),
        });
      const forgotten = ({ expect: number, entries, fence = 0 }: Append): WriteResult => {
        isForgetting = false;
        return { ok: true, number: number + entries.length, fence };
      };
      const noted = agentOf(
        async function* (turn: Turn) {
          runs.push(`noted (${turn.attempt})`);
          yield status("TASK_STATE_WORKING");
          await settle();
          isForgetting = turn.attempt === 1;
          yield chunk("a", "lost ", false);
          await gate.pass();
          yield chunk("a", "finished");
        },
        { onCrash: "resume" },
      );
      const [here, there] = await twoNodes({ agent: noted, wrap: forget }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      gate.open();
      await here.clock.advance(LEASE);
      expect(await there.get(id)).toMatchObject({ ...COMPLETED, artifacts: [{ parts: [{ text: "lost finished" }] }] });
      expect(runs).toEqual(["noted (1)", "noted (2)"]);
      await expectWhole(here, id);
    });

    test("for less than the lease keeps its runs, and writes what they made meanwhile", async () => {
      const steps = [createGate(), createGate(), createGate()];
      const chatty = agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        for (const [number, step] of steps.entries()) {
          await step.pass();
          yield chunk("a", `${number} `, number > 0);
        }
      });
      const access = new SharedStoreAccess();
      const [here, there] = await twoNodes({ agent: chatty, wrap: access.wrap }, { agent: chatty });
      const waiting = here.task("first");
      await steps[0]?.reached;
      await settle();
      const { id } = (await there.list()).tasks[0] as Task;
      const frames = framesOf(await there.subscribe(id, 1, { replay: true }));
      access.leave();
      steps[0]?.open();
      await here.clock.advance(2_000);
      // Refused at once, and all that only reads too.
      await expect(here.send("second")).rejects.toMatchObject({ ...UNAVAILABLE, retryAfter: 1 });
      await expect(here.list()).rejects.toMatchObject({ code: "unreachable" });
      steps[1]?.open();
      await here.clock.advance(LEASE - 6_000);
      access.comeBack();
      await here.clock.advance(1_000);
      expect((await there.get(id)).artifacts).toEqual([expect.objectContaining({ parts: [{ text: "0 1 " }] })]);
      steps[2]?.open();
      expect(await promptly(waiting)).toMatchObject(COMPLETED);
      expect(await promptly(here.begin("again"))).toMatchObject({ id: expect.any(String) });
      const log = await here.log(id);
      expect(viewViolations(await promptly(frames), log, 1)).toEqual([]);
      await expectWhole(there, id);
    });

    test("tells callers within seconds, while runs wait on", async () => {
      const { gate, agent } = longRun();
      const access = new SharedStoreAccess();
      const [here] = await twoNodes({ agent: agent("here"), wrap: access.wrap });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      access.leave();
      gate.open();
      const sent = here.send("second").catch((error: unknown) => error);
      await here.clock.advance(6_000);
      expect(await promptly(sent)).toMatchObject(UNAVAILABLE);
      access.comeBack();
      await here.clock.advance(1_000);
      expect(await here.get(id)).toMatchObject(COMPLETED);
      await here.clock.advance(LEASE);
      expect((await here.list()).tasks).toHaveLength(1);
    });
  });

  describe("a node that ends", () => {
    test("hands runs that may be repeated to another one at once, and their readers see it", async () => {
      const { runs, aborts, gate, agent } = longRun();
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const waiting = here.task("first");
      await gate.reached;
      await settle();
      const { id } = (await there.list()).tasks[0] as Task;
      const frames = framesOf(await here.subscribe(id, 1, { replay: true }));
      const draining = here.engine.drain(10_000);
      await here.clock.advance(9_999);
      expect(runs).toHaveLength(1);
      await expect(here.send("second")).rejects.toMatchObject(UNAVAILABLE);
      await here.clock.advance(1);
      await promptly(draining);
      expect(aborts).toEqual([expect.objectContaining(UNAVAILABLE)]);
      expect(runs).toEqual(["here: first (1)", "there: first (2)"]);
      gate.open();
      // Neither those who wait nor those who follow lose their place while the node still lives.
      expect(await promptly(waiting)).toMatchObject(COMPLETED);
      expect(viewViolations(await promptly(frames), await there.log(id), 1)).toEqual([]);
      await expectWhole(there, id);
    });

    test("fails a run that must not be repeated, once, when its time is up", async () => {
      const { runs, aborts, gate, agent } = longRun({ onCrash: "fail" });
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const { id } = await here.begin("first");
      await gate.reached;
      await settle();
      const draining = here.engine.drain(10_000);
      await here.clock.advance(10_000);
      await promptly(draining);
      const task = await there.get(id);
      expect(task).toMatchObject(FAILED);
      expect(textsOf(task)).toEqual([{ text: statusText("processStopped") }]);
      expect(aborts).toHaveLength(1);
      await here.clock.advance(3 * LEASE);
      expect(runs).toHaveLength(1);
      await expectWhole(there, id);
    });

    test("whose time is up while a task is withdrawn for a message still sends the message", async () => {
      const held = createStoreGate();
      const agent = messageAgent({ onCrash: "fail" });
      const [here] = await twoNodes({ agent, wrap: (inner) => share(held.wrap(inner)) }, { agent });
      held.gate.hold();
      // With a key the task is written before its run begins.
      const answer = here.send("first", { key: "key" });
      await held.gate.waiting();
      await held.gate.step();
      expect(await held.gate.waiting()).toMatchObject([{ kind: "discard" }]);
      const draining = here.engine.drain(10_000);
      await here.clock.advance(10_000);
      held.gate.open();
      expect(await promptly(answer)).toMatchObject({ message: { role: "ROLE_AGENT" } });
      await promptly(draining);
    });

    test("waits for runs that finish in time", async () => {
      const { runs, gate, agent } = longRun({ onCrash: "fail" });
      const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
      const waiting = here.task("first");
      await gate.reached;
      const draining = here.engine.drain(10_000);
      await here.clock.advance(5_000);
      gate.open();
      await promptly(draining);
      expect(await promptly(waiting)).toMatchObject(COMPLETED);
      expect(runs).toHaveLength(1);
      await expectWhole(there, (await waiting).id);
    });

    test.each(["fail", "resume"] as const)(
      "gives what waits in line away at once, also twice, as never begun (%s)",
      async (onCrash) => {
        const { runs, gate, agent } = longRun({ onCrash, concurrency: 1 });
        const [here, there] = await twoNodes({ agent: agent("here") }, { agent: agent("there") });
        await here.begin("first");
        await there.begin("blocker");
        await settle();
        const { id } = await here.begin("second");
        await settle();
        const draining = here.engine.drain(10_000);
        await settle(20);
        const third = await Harness.start({ agent: agent("third"), wrap: share, after: here });
        // It waits in line there too, and is not counted.
        expect(await there.memory.head(id)).toMatchObject({ attempt: 0 });
        const alsoDraining = there.engine.drain(10_000);
        await settle(20);
        expect(runs).toContain("third: second (1)");
        gate.open();
        await promptly(Promise.all([draining, alsoDraining]));
        await settle(20);
        expect(await third.get(id)).toMatchObject(COMPLETED);
        await expectWhole(third, id);
      },
    );

    test("does not use up the attempts of a task, however often that is handed over", async () => {
      const { runs, gate, agent } = longRun();
      const limits = { attempts: 2 };
      let [node] = await twoNodes({ agent: agent("0"), limits });
      const { id } = await node.begin("first");
      for (let number = 1; number <= 5; number++) {
        await settle(20);
        const next = await Harness.start({ agent: agent(String(number)), limits, wrap: share, after: node });
        const draining = node.engine.drain(0);
        await node.clock.advance(1);
        await promptly(draining);
        node.crash();
        node = next;
      }
      gate.open();
      await settle(20);
      expect(await node.get(id)).toMatchObject(COMPLETED);
      expect(new Set(runs.slice(1).map((run) => run.split(" ")[2]))).toEqual(new Set(["(2)"]));
      await expectWhole(node, id);
    });

    test("leaves to others what it still accepts for a carrier or a run", async () => {
      const { gate, agent } = longRun();
      const both = (node: string) => ({ agents: { agent: agent(node), echo: echo() } });
      const [here, there] = await twoNodes(both("here"), both("there"));
      await here.begin("first");
      await gate.reached;
      const draining = here.engine.drain(10_000);
      const replyTo = { id: "r", route: "room", address: "x", wants: "outcome" as const };
      const task = await promptly(here.task("hello", { agent: "echo", replyTo }));
      expect(task).toMatchObject(COMPLETED);
      expect(there.counts.runs_resumed).toBeUndefined();
      gate.open();
      await promptly(draining);
      await expectWhole(there, task.id);
    });

    test("gives up its place at once, with whatever it could not hand over", async () => {
      const { runs, gate, agent } = longRun();
      const access = new SharedStoreAccess();
      const keep = (inner: Parameters<typeof share>[0]) => ({ ...access.wrap(inner), close: () => Promise.resolve() });
      const [here] = await twoNodes({ agent: agent("here"), wrap: keep }, { agent: agent("there") });
      await here.begin("first");
      await gate.reached;
      await settle();
      await promptly(here.engine.close());
      await here.clock.advance(1);
      here.memory.wakeups.publish({ work: true });
      await settle(20);
      expect(runs).toEqual(["here: first (1)", "there: first (2)"]);
    });
  });

  describe("an agent that can run on another node only", () => {
    const placed = (isAvailable: boolean, runs: string[], node: string) =>
      agentOf(
        async function* (turn) {
          runs.push(`${node}: ${inputText(turn)}`);
          if (inputText(turn) === "ask") yield status("TASK_STATE_INPUT_REQUIRED", "?");
          else yield chunk("a", node, false);
        },
        { isAvailable: () => isAvailable },
      );

    test("is reached through any, with a key too", async () => {
      const runs: string[] = [];
      const [here, there] = await twoNodes(
        { agent: placed(false, runs, "here") },
        { agent: placed(true, runs, "there") },
      );
      const sends = ["a", "b"].flatMap((key) =>
        [here, there, here].map((node) => node.task("hello", { key, messageId: key })),
      );
      const tasks = await promptly(Promise.all(sends));
      for (const task of tasks)
        expect(task).toMatchObject({ ...COMPLETED, artifacts: [{ parts: [{ text: "there" }] }] });
      expect(new Set(tasks.map(({ id }) => id)).size).toBe(2);
      expect(runs).toEqual(["there: hello", "there: hello"]);
      const frames = await promptly(framesOf(await here.stream("streamed")));
      expect(frames.at(-1)?.event).toMatchObject({ statusUpdate: COMPLETED });
      await expectWhole(here, tasks[0]?.id ?? "");
    });

    test("is asked and answered through any", async () => {
      const runs: string[] = [];
      const [here, there] = await twoNodes(
        { agent: placed(false, runs, "here") },
        { agent: placed(true, runs, "there") },
      );
      const { id } = await promptly(here.task("ask"));
      await settle();
      expect(await promptly(here.task("answer", { taskId: id }))).toMatchObject(COMPLETED);
      expect(runs).toEqual(["there: ask", "there: answer"]);
      await expectWhole(there, id);
    });

    test("fails what it is sent when no node has it, as if it were not connected", async () => {
      const runs: string[] = [];
      const [here] = await twoNodes({ agent: placed(false, runs, "here") }, { agent: placed(false, runs, "there") });
      const sent = here.task("hello");
      await here.clock.advance(10_000);
      const task = await promptly(sent);
      expect(task).toMatchObject(FAILED);
      expect(textsOf(task)).toEqual([{ text: statusText("peerNotConnected") }]);
      expect(runs).toEqual([]);
      await expectWhole(here, task.id);
    });

    test("is not claimed by a node that does not serve it", async () => {
      const { runs, gate, agent } = longRun();
      const [here, there] = await twoNodes({ agents: { mine: agent("here") } }, { agents: { yours: agent("there") } });
      const { id } = await here.begin("first", { agent: "mine" });
      await gate.reached;
      await settle();
      here.crash();
      await here.clock.advance(3 * LEASE);
      expect(runs).toEqual(["here: first (1)"]);
      await expect(there.get(id, { agent: "mine" })).rejects.toMatchObject({ code: "METHOD_NOT_FOUND" });
      const heir = await Harness.start({ agents: { mine: agent("heir") }, wrap: share, after: here });
      gate.open();
      await settle(20);
      expect(await heir.get(id, { agent: "mine" })).toMatchObject(COMPLETED);
    });
  });
});
