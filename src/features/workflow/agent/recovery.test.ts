/** Processes that run workflows are killed, and the next one on the same store continues. */

import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { CallableAgent } from "../../../core/agents/directory.ts";
import type { Agent } from "../../../core/engine/agent.ts";
import { agentOf, chunk, createGate, inputText, status } from "../../../core/engine/testing/agents.ts";
import { settle } from "../../../core/engine/testing/fake-clock.ts";
import { framesOf, type Harness } from "../../../core/engine/testing/harness.ts";
import { logViolations } from "../../../core/engine/testing/log-invariants.ts";
import type { TaskStore, Write } from "../../../core/store/contract.ts";
import type { Workflow } from "../definition/plan.ts";
import { ASKED } from "./run.ts";
import { progressOf, startWorld, statusTextOf, textsOf, workflowOf } from "./testing/workflows.ts";

const LEASE = 15_000;

interface Graph {
  /** For each step, which of those before it it needs. */
  readonly needs: readonly (readonly number[])[];
  /** Turns of the event loop that each step takes. */
  readonly work: readonly number[];
}

const graphs: fc.Arbitrary<Graph> = fc.integer({ min: 1, max: 8 }).chain((count) =>
  fc.record({
    needs: fc.tuple(
      ...Array.from({ length: count }, (_, index) => fc.subarray(Array.from({ length: index }, (_, before) => before))),
    ),
    work: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: count, maxLength: count }),
  }),
);

const nameOf = (index: number) => `s${index}`;

function workflowFor({ needs }: Graph): Workflow {
  const steps = needs.map((some, index) => [
    nameOf(index),
    {
      agent: "worker",
      needs: some.map(nameOf),
      input: [nameOf(index), ...some.map((need) => `\${steps.${nameOf(need)}.text}`)].join(" "),
    },
  ]);
  return workflowOf(
    Object.fromEntries(steps),
    needs.map((_, index) => nameOf(index)),
  );
}

/** What each step should return: its name around what those it needs return. */
function expected({ needs }: Graph): Record<string, string> {
  const texts: string[] = [];
  for (const [index, some] of needs.entries()) {
    texts.push(`(${[nameOf(index), ...some.map((need) => texts[need])].join(" ")})`);
  }
  return Object.fromEntries(texts.map((text, index) => [nameOf(index), text]));
}

/** Counts how often it finished each step. It can be resumed itself, as it does nothing but count at its end. */
function createWorker({ work }: Graph, finished: Map<string, number>): Agent {
  return agentOf(
    async function* (turn) {
      const [step = ""] = inputText(turn).split(" ");
      yield chunk("text", "(", false);
      await settle(work[Number(step.slice(1))]);
      yield { ...chunk("text", inputText(turn)), checkpoint: 1 };
      yield chunk("text", ")");
      finished.set(step, (finished.get(step) ?? 0) + 1);
    },
    { onCrash: "resume" },
  );
}

describe("a killed process", () => {
  test("is continued without repeating steps that have ended, whenever it was killed", async () => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 3 }), async (graph, kills) => {
        const runs = new Map<string, number>();
        const world = { workflow: workflowFor(graph), agents: { worker: createWorker(graph, runs) } };
        let harness: Harness = await startWorld(world);
        const { id } = await harness.begin("x");
        for (const turns of kills) {
          await settle(turns);
          harness.crash();
          const ended = progressOf(await harness.log(id)).filter((step) => step.endsWith("completed"));
          const before = new Map(runs);
          await harness.clock.advance(LEASE + 1);
          harness = await startWorld({ ...world, after: harness });
          await settle();
          for (const step of ended.map((one) => one.split(" ")[0] ?? "")) expect(runs.get(step)).toBe(before.get(step));
        }
        const log = await followToEnd(harness, id);
        expect(logViolations(log, { ended: true })).toEqual([]);
        expect(log.at(-1)?.state).toBe("TASK_STATE_COMPLETED");
        expect(textsOf(await harness.get(id))).toEqual(expected(graph));
        for (const step of Object.keys(expected(graph))) {
          expect(progressOf(log).filter((one) => one === `${step} completed`).length).toBeGreaterThan(0);
        }
        const { tasks } = await harness.list({ agent: "worker" });
        expect(tasks.map(({ status: { state } }) => state)).toEqual(graph.needs.map(() => "TASK_STATE_COMPLETED"));
      }),
      { numRuns: 60 },
    );
  });

  it("has its running steps found again where they run elsewhere, and none of them is sent twice", async () => {
    const gate = createGate();
    const runs: string[] = [];
    const elsewhere = await startWorld({
      workflow: workflowOf({}),
      agents: {
        worker: agentOf(async function* (turn) {
          runs.push(inputText(turn));
          yield chunk("text", "half ", false);
          await gate.pass();
          yield chunk("text", "whole");
        }),
      },
    });
    const remote = (agent: CallableAgent): CallableAgent => ({
      ...agent,
      isLocal: false,
      dispatch: (operation, call) => elsewhere.engine.agent("worker").dispatch(operation, call),
    });
    const world = {
      workflow: workflowOf({ a: { agent: "worker" }, b: { agent: "worker" } }, ["a", "b"]),
      agents: { worker: agentOf(async function* () {}) },
      resolve: remote,
    };
    const first = await startWorld(world);
    const { id } = await first.begin("x");
    await gate.reached;
    await settle();
    first.crash();
    gate.open();
    await settle();
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world, after: first });
    await followToEnd(second, id);
    expect(textsOf(await second.get(id))).toEqual({ a: "half whole", b: "half whole" });
    expect(runs).toEqual(["x", "x"]);
  });

  it.each([
    ["reports that where a message may have been received", 1, "TASK_STATE_FAILED", 1],
    ["sends it again where the step may be repeated", 2, "TASK_STATE_COMPLETED", 2],
  ])("%s", async (_name, attempts, state, sends) => {
    const sent: string[] = [];
    const held = createGate();
    /** Does not recognise repeats, and never confirms the first message. */
    const forgetful = (agent: CallableAgent): CallableAgent => ({
      ...agent,
      isLocal: false,
      recognizesRepeats: false,
      async dispatch(operation, call) {
        if (operation.kind === "stream" && sent.push(operation.message.messageId) === 1) await held.pass();
        return agent.dispatch(operation, call);
      },
    });
    const world = {
      workflow: workflowOf({ a: { retry: { attempts, baseMs: 0, capMs: 0 } } }),
      agents: {
        a: agentOf(async function* () {
          yield status("TASK_STATE_COMPLETED", "done");
        }),
      },
      resolve: forgetful,
    };
    const first = await startWorld(world);
    const { id } = await first.begin("x");
    await held.reached;
    first.crash();
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world, after: first });
    await second.clock.advance(1);
    await followToEnd(second, id);
    const task = await second.get(id);
    expect(task.status.state).toBe(state);
    expect(sent).toHaveLength(sends);
    if (attempts === 1) expect(statusTextOf(task)).toContain("whether the agent received the message is not known");
  });

  it("that had asked a question is answered in the next one", async () => {
    const world = {
      workflow: workflowOf({ a: {}, b: { needs: ["a"], input: "${steps.a.text}" } }),
      agents: {
        a: agentOf(async function* (turn) {
          if (turn.history.length === 0) yield status("TASK_STATE_INPUT_REQUIRED", "Who?");
          else yield chunk("text", inputText(turn), false);
        }),
        b: agentOf(async function* (turn) {
          yield chunk("text", `b(${inputText(turn)})`, false);
        }),
      },
    };
    const first = await startWorld(world);
    const { id } = await first.task("x");
    first.crash();
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world, after: first });
    expect(textsOf(await second.task("me", { taskId: id }))).toEqual({ b: "b(me)" });
  });

  it("that died when the run had just ended does not begin another with the answer", async () => {
    let crash = (): void => {};
    const runs: string[] = [];
    const world = {
      workflow: workflowOf({ a: {} }),
      agents: {
        a: agentOf(async function* (turn) {
          runs.push(inputText(turn));
          if (turn.history.length === 0) yield status("TASK_STATE_INPUT_REQUIRED", "Who?");
          else yield chunk("text", inputText(turn), false);
        }),
      },
    };
    const wrap = (store: TaskStore): TaskStore => ({
      ...store,
      async write(writes) {
        const results = await store.write(writes);
        const isEnd = (write: Write) =>
          write.kind === "remember" && write.key === ASKED && write.value?.includes('"path"') === false;
        if (writes.some(isEnd)) crash();
        return results;
      },
    });
    const first = await startWorld({ ...world, wrap });
    const { id } = await first.task("x");
    const died = new Promise<void>((resolve) => {
      crash = () => {
        first.crash();
        resolve();
      };
    });
    void first.task("me", { taskId: id });
    await died;
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world, after: first });
    await followToEnd(second, id);
    expect(runs).toEqual(["x", "me"]);
    expect(textsOf(await second.get(id))).toEqual({ a: "me" });
  });

  it("of a run that was to be cancelled leaves no task of a step running", async () => {
    const stuck = agentOf(
      async function* (turn) {
        yield status("TASK_STATE_WORKING");
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener("abort", () => resolve());
        });
      },
      { onCrash: "resume" },
    );
    const world = {
      workflow: workflowOf({ a: {}, b: {}, c: { needs: ["b"] } }),
      agents: { a: stuck, b: stuck, c: stuck },
    };
    const first = await startWorld(world);
    const { id } = await first.begin("x");
    await settle();
    first.crash();
    await first.memory.write([{ kind: "request-cancel", id }]);
    await first.clock.advance(LEASE + 1);
    const second = await startWorld({ ...world, after: first });
    await settle();
    expect((await second.get(id)).status.state).toBe("TASK_STATE_CANCELED");
    for (const agent of ["a", "b"]) {
      expect((await second.list({ agent })).tasks.map(({ status: { state } }) => state)).toEqual([
        "TASK_STATE_CANCELED",
      ]);
    }
    expect((await second.list({ agent: "c" })).tasks).toEqual([]);
  });
});

async function followToEnd(harness: Harness, id: string) {
  await framesOf(await harness.subscribe(id, 1, { replay: true }));
  return harness.log(id);
}
