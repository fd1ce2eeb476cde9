import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LogEntry, type TaskEvent } from "../model/event.ts";
import { textOf } from "../model/message.ts";
import { cases } from "../model/testing/exploring.ts";
import type { TaskStore } from "../store/contract.ts";
import type { Agent } from "./agent.ts";
import { agentOf, chunk } from "./testing/agents.ts";
import { promptly, settle } from "./testing/fake-clock.ts";
import { createSharedMemory, createSharedSqlite, Harness, type SharedStore } from "./testing/harness.ts";
import { Interleaving, scripted, steps, stepsWithFaults, type World } from "./testing/interleaving.ts";
import { logViolations, snapshotViolations, viewViolations } from "./testing/log-invariants.ts";
import {
  FlakyStore,
  overrideStore,
  slowStore,
  unreliableWakeups,
  type WakeupFate,
  WriteRecord,
} from "./testing/stores.ts";

const EVERYTHING = { history: Number.MAX_SAFE_INTEGER, artifacts: true };
const RUNS = cases(3_000, 100);

/** How long the store takes over each write. */
const delays = fc.array(fc.nat({ max: 4 }), { maxLength: 8 });

interface WorldOptions {
  readonly onCrash: Agent["onCrash"];
  readonly turns: readonly number[];
  readonly nodes: number;
  readonly shared: SharedStore;
  readonly fates?: readonly WakeupFate[];
  /** How long after a kill the successor starts. */
  readonly pauseMs: number;
}

async function worldOf(options: WorldOptions): Promise<World & { readonly record: WriteRecord }> {
  const store = new FlakyStore();
  const record = new WriteRecord();
  const ran = new Set<string>();
  const hasRoom = options.nodes > 1;
  const agent = scripted(options.onCrash, ran, hasRoom ? 100 : 3);
  const wrap = (inner: TaskStore) =>
    unreliableWakeups(slowStore(store.wrap(record.wrap(inner)), options.turns), options.fates ?? []);
  const first = await Harness.start({ agent, wrap, shared: options.shared });
  const nodes = [first];
  while (nodes.length < options.nodes) nodes.push(await Harness.start({ agent, wrap, after: first }));
  return {
    nodes,
    store,
    ran,
    hasRoom,
    record,
    async replace(node) {
      nodes[node]?.crash();
      store.fail(0);
      await first.clock.advance(options.pauseMs);
      nodes[node] = await Harness.start({ agent, wrap, after: first });
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
        const world = await worldOf({ onCrash, turns, nodes: 1, shared: createSharedMemory(), pauseMs: 20_000 });
        const play = new Interleaving(world);
        await play.play(played);
        expect([...(await play.finish()), ...world.record.violations]).toEqual([]);
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

const NODE_RUNS = cases(1_500, 40);
const fates = fc.oneof(
  fc.constant<WakeupFate[]>([]),
  fc.constant<WakeupFate[]>(["lost"]),
  fc.array(fc.constantFrom<WakeupFate>("arrives", "lost", "doubled", "late", "vague"), { maxLength: 8 }),
);

describe.each([
  ["memory", async () => createSharedMemory()],
  ["sqlite", createSharedSqlite],
] as const)("several nodes on one store (%s)", (_name, createShared) => {
  test.each([
    [2, "fail"],
    [3, "resume"],
  ] as const)(
    "%i of them keep logs whole and answer every message, whatever is lost or killed (%s)",
    async (nodes, onCrash) => {
      let faults = 0;
      let frames = 0;
      await fc.assert(
        fc.asyncProperty(stepsWithFaults, delays, fates, async (played, turns, wakeups) => {
          const shared = await createShared();
          const world = await worldOf({ onCrash, turns, nodes, shared, fates: wakeups, pauseMs: 0 });
          const play = new Interleaving(world);
          await play.play(played);
          expect([...(await play.finish()), ...world.record.violations]).toEqual([]);
          faults += play.faults;
          frames += play.extent.frames;
          await shared.store.close();
        }),
        { numRuns: NODE_RUNS },
      );
      expect(faults).toBeGreaterThan(NODE_RUNS);
      expect(frames).toBeGreaterThan(NODE_RUNS);
    },
  );
});

describe("what a run does at once", () => {
  /** What a run does next; it waits for the store only where that is said. */
  const act = fc.constantFrom("event" as const, "value" as const, "wait" as const, "pause" as const);

  test("values are never stored before the events that came before them, and in their order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 3, maxLength: 20 }), delays, async (acts, turns) => {
        /** Of each value, how many events came before it. */
        const eventsBefore: number[] = [];
        let events = 0;
        const agent = agentOf(async function* ({ memory }) {
          const writing: Promise<void>[] = [];
          for (const next of acts) {
            if (next === "event") yield chunk("a", `${++events} `, events > 1);
            else if (next === "value") writing.push(memory.set("values", eventsBefore.push(events)));
            else if (next === "wait") await writing.at(-1);
            else await settle(1);
          }
          await Promise.all(writing);
        });
        const stored: number[] = [];
        const violations: string[] = [];
        const observe = (inner: TaskStore) =>
          overrideStore(inner, {
            async write(writes) {
              const results = await inner.write(writes);
              for (const write of writes) {
                if (write.kind !== "remember") continue;
                const value = Number(write.value);
                const { artifacts: [artifact] = [] } = (await inner.snapshot(write.id, EVERYTHING))?.task ?? {};
                const written = textOf(artifact?.parts ?? []).match(/\d+/g)?.length ?? 0;
                if (written < (eventsBefore[value - 1] ?? 0)) violations.push(`${value} is stored after ${written}`);
                stored.push(value);
              }
              return results;
            },
          });
        const wrap = (inner: TaskStore) => slowStore(observe(inner), turns);
        const harness = await Harness.start({ agent, wrap });
        const { status } = await promptly(harness.task("go"));
        expect({ state: status.state, violations, stored }).toEqual({
          state: "TASK_STATE_COMPLETED",
          violations: [],
          stored: eventsBefore.map((_, at) => at + 1),
        });
      }),
      { numRuns: RUNS },
    );
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
