import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { connect } from "../../src/core/client/connect.ts";
import { textOf } from "../../src/core/model/message.ts";
import { isTerminal, type Task } from "../../src/core/model/task.ts";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { seededRandom } from "../../src/features/xiaoyi/simulator/random.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
import { expectedTexts, remoteSteps, twentySteps } from "./twenty-steps.ts";
import { Victim } from "./victim.ts";

const KILLS = cases(100);
const SEED = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How often each step of each run was begun and finished, as its agent counts. */
const begun = new Map<string, number>();
const finished = new Map<string, number>();
let running = 0;

const workers = await startServer({
  grpcPort: false,
  agents: {
    worker: defineAgent({
      name: "Worker",
      description: "Counts its work.",
      async *run(turn) {
        const step = turn.text.split(" ").slice(0, 2).join(" ");
        count(begun, step);
        running++;
        try {
          yield turn.artifact({ name: "text", text: "[" });
          await pause(5 + Math.random() * 60, undefined, { signal: turn.signal });
          yield turn.artifact({ name: "text", text: `${turn.text}]`, append: true });
          count(finished, step);
        } finally {
          running--;
        }
      },
    }),
  },
});

process.env.WORKERS_URL = workers.url;
const victim = new Victim(join(createFolder(), "data.db"), "./workflow-child.ts");
afterAll(() => victim.kill());

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

const flow = async () => connect(`${await victim.url}/agents/flow`);

async function begin(input: string): Promise<string> {
  const message = { parts: [{ text: input }] };
  const outcome = await (await flow()).send({ message, configuration: { returnImmediately: true } });
  if (!("task" in outcome)) throw new Error("The answer is not a task.");
  return outcome.task.id;
}

async function follow(id: string): Promise<Task> {
  const agent = await flow();
  const now = await agent.get(id);
  if (isTerminal(now.status.state)) return now;
  try {
    for await (const { event } of agent.subscribe(id))
      if ("task" in event && isTerminal(event.task.status.state)) break;
  } catch {
    // It ended before it could be followed.
  }
  return agent.get(id);
}

function textsOf({ artifacts = [] }: Task): Record<string, string> {
  return Object.fromEntries(artifacts.map(({ name, parts }) => [name ?? "", textOf(parts)]));
}

test(`a workflow of twenty steps survives ${KILLS} kills, and no step runs twice (FAULT_SEED=${SEED})`, async () => {
  expect(twentySteps(workers.url).steps.size).toBe(20);
  const random = seededRandom(SEED);
  await victim.start();
  const started = performance.now();
  const first = await follow(await begin("calm"));
  const duration = performance.now() - started;
  expect(textsOf(first)).toEqual(expectedTexts("calm"));
  for (let round = 0; round < KILLS; round++) {
    const input = `round${round}`;
    const id = await begin(input);
    await pause(random() * duration);
    await victim.kill();
    const ended = [...finished.keys()].filter((step) => step.startsWith(`${input} `));
    await victim.start();
    const task = await follow(id);
    expect([task.status.state, task.status.message]).toEqual(["TASK_STATE_COMPLETED", undefined]);
    expect(textsOf(task)).toEqual(expectedTexts(input));
    for (const step of ended) expect([step, begun.get(step)]).toEqual([step, 1]);
    for (const name of remoteSteps) {
      const step = `${input} ${name}`;
      expect([step, begun.get(step), finished.get(step)]).toEqual([step, 1, 1]);
    }
  }
  expect(victim.runsResumed).toBeGreaterThan(0);
});

test("a cancelled workflow leaves no task running", async () => {
  const id = await begin("cancelled");
  await expect.poll(() => running).toBeGreaterThan(0);
  const task = await (await flow()).cancel(id);
  expect([task.status.state, task.status.message]).toEqual(["TASK_STATE_CANCELED", undefined]);
  await expect.poll(() => running).toBe(0);
  const states = new Set<string>();
  for await (const { status } of (await connect(workers.url)).list()) states.add(status.state);
  expect([...states].filter((state) => !isTerminal(state as Task["status"]["state"]))).toEqual([]);
  expect(remoteSteps.filter((name) => begun.has(`cancelled ${name}`)).length).toBeLessThan(remoteSteps.length);
});
