import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LogEntry, type TaskEvent } from "../model/event.ts";
import { cases } from "../model/testing/exploring.ts";
import type { TaskStore } from "../store/contract.ts";
import type { Agent } from "./agent.ts";
import { Harness } from "./testing/harness.ts";
import { Interleaving, scripted, steps, stepsWithFaults, type World } from "./testing/interleaving.ts";
import { logViolations, snapshotViolations, viewViolations } from "./testing/log-invariants.ts";
import { FlakyStore, slowStore } from "./testing/stores.ts";

const RUNS = cases(100, 3_000);

/** How long the store takes over each write. */
const delays = fc.array(fc.nat({ max: 4 }), { maxLength: 8 });

/** A successor takes over when the lease of the one that died has run out. */
async function worldOf(agent: Agent, turns: readonly number[]): Promise<World> {
  const store = new FlakyStore();
  const wrap = (inner: TaskStore) => slowStore(store.wrap(inner), turns);
  const harness = await Harness.start({ agent, wrap });
  let current = harness;
  return {
    harness,
    store,
    async succeed() {
      current.crash();
      store.fail(0);
      await current.clock.advance(20_000);
      current = await Harness.start({ agent, wrap, after: current });
      return current;
    },
  };
}

describe.each(["fail", "resume"] as const)("whatever is asked in whatever order (%s)", (onCrash) => {
  test.each([
    ["logs stay whole and readers see all of them", steps, 0],
    ["also when the store fails and processes die", stepsWithFaults, RUNS],
  ])("%s", async (_name, sequences, leastFaults) => {
    let tasks = 0;
    let frames = 0;
    let faults = 0;
    await fc.assert(
      fc.asyncProperty(sequences, delays, async (played, turns) => {
        const play = new Interleaving(await worldOf(scripted(onCrash), turns));
        await play.play(played);
        expect(await play.finish()).toEqual([]);
        tasks += play.extent.tasks;
        frames += play.extent.frames;
        faults += play.faults;
      }),
      { numRuns: RUNS },
    );
    expect(tasks).toBeGreaterThan(RUNS);
    expect(frames).toBeGreaterThan(RUNS);
    expect(faults).toBeGreaterThanOrEqual(leastFaults);
  });
});

describe("the check itself notices", () => {
  const scope = { taskId: "t", contextId: "c" };
  const begin: TaskEvent = { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } };
  const working: TaskEvent = { statusUpdate: { ...scope, status: { state: "TASK_STATE_WORKING" } } };
  const done: TaskEvent = { statusUpdate: { ...scope, status: { state: "TASK_STATE_COMPLETED" } } };
  const log = (...events: TaskEvent[]) => events.map((event, index) => LogEntry.of(index + 1, event));
  const whole = log(begin, working, done);

  test("nothing in a log that is whole", () => {
    expect(logViolations(whole, { ended: true })).toEqual([]);
    expect(viewViolations(whole, whole, 0)).toEqual([]);
    expect(snapshotViolations(whole, { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } })).toEqual(
      [],
    );
  });

  test.each([
    ["a gap", [...whole.slice(0, 1), ...whole.slice(2)], "entry 2 has the number 3"],
    ["a number twice", [...whole.slice(0, 2), ...whole.slice(1)], "entry 3 has the number 2"],
    ["a second terminal event", log(begin, done, done), "2 terminal events"],
    ["something after the terminal event", log(begin, done, working), "something follows the terminal event"],
    ["a log without an end", log(begin, working), "no terminal event"],
    ["a second task", log(begin, begin, done), "entry 2: a log has one task, at its start"],
    ["a log without its task", log(working, done), "entry 1: a log has one task, at its start"],
  ])("%s", (_name, entries, violation) => {
    expect(logViolations(entries, { ended: true })).toContain(violation);
  });

  test("a snapshot that is not what the log says", () => {
    expect(snapshotViolations(whole, { id: "t", contextId: "c", status: { state: "TASK_STATE_FAILED" } })).toHaveLength(
      1,
    );
  });

  test.each([
    ["missed", [whole[0], whole[2]]],
    ["came twice", [whole[0], whole[0], whole[1]]],
    ["came out of order", [whole[1], whole[0]]],
    ["was another", [LogEntry.of(1, done)]],
  ])("a reader to whom something %s", (_name, frames) => {
    expect(viewViolations(frames as LogEntry[], whole, 0)).not.toEqual([]);
  });
});
