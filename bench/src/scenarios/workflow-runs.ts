import { call, startTasks } from "../client/load.ts";
import type { Endpoint } from "../client/requests.ts";
import type { Contestant } from "../contestants/launch.ts";
import { compare, type Entry, type Scenario } from "../scenario.ts";

const ours = { contestant: "dragoman-workflow", agent: "echo" } as const;

interface Crowd extends Entry {
  path: string;
  count: number;
}

const entries: readonly Crowd[] = [
  { ...ours, label: "1,000 plain tasks, SQLite", path: "/gate", count: 1_000, store: "sqlite" },
  { ...ours, label: "100 workflow runs, SQLite", path: "/waiting", count: 100, store: "sqlite" },
  { ...ours, label: "1,000 workflow runs, SQLite", path: "/waiting", count: 1_000, store: "sqlite" },
  { ...ours, label: "1,000 workflow runs, memory", path: "/waiting", count: 1_000, store: "memory" },
];

export const workflowRuns: Scenario = {
  name: "workflow-runs",
  title: "1,000 workflow runs that wait at the same time, then complete: memory per run",
  setup:
    "Dragoman beside itself. A run has a step that has ended, one whose agent waits and one that comes after; all runs wait before memory is " +
    "measured. Plain tasks are tasks of the agent that waits. Memory is that after garbage collection, above that of the same server before " +
    "the first of them; a store in memory keeps what has ended.",
  targets: [
    { measure: "openHeapKilobytes", of: "1,000 workflow runs, SQLite", alone: true, atMost: 48 },
    {
      measure: "openHeapKilobytes",
      of: "1,000 workflow runs, SQLite",
      times: "100 workflow runs, SQLite",
      atMost: 1.2,
    },
    { measure: "endedHeapKilobytes", of: "1,000 workflow runs, SQLite", alone: true, atMost: 2 },
  ],
  async run(context, record) {
    const rounds = Math.min(context.rounds, 3);
    await compare({ ...context, rounds }, record, entries, (contestant, { label }) => {
      const { count, path } = entries.find((entry) => entry.label === label)!;
      return measureCrowd(contestant, path, context.size(count, 50));
    });
  },
};

async function measureCrowd(contestant: Contestant, path: string, count: number) {
  const agent = { ...contestant, path: contestant.path + path };
  const gate = { ...contestant, path: `${contestant.path}/gate` };
  // The first ones also allocate compiled code and pools that persist: they run before the measurement.
  await release(agent, gate, await gather(agent, gate, count));
  const before = await contestant.memory();
  const tasks = await gather(agent, gate, count);
  const during = await contestant.memory();
  await release(agent, gate, tasks);
  const after = await contestant.memory();
  return {
    openRssKilobytes: (during.rss - before.rss) / 1024 / count,
    openHeapKilobytes: (during.heapUsed - before.heapUsed) / 1024 / count,
    endedHeapKilobytes: (after.heapUsed - before.heapUsed) / 1024 / count,
  };
}

/** Starts tasks, and returns their ids when all of them wait. */
async function gather(agent: Endpoint, gate: Endpoint, count: number): Promise<string[]> {
  const tasks = await startTasks(agent, count, { returnImmediately: true });
  while ((await ask(gate, "count")) < count);
  return tasks.map(({ id }) => id);
}

/** Lets all tasks continue, and waits for the end of each. */
async function release(agent: Endpoint, gate: Endpoint, ids: readonly string[]): Promise<void> {
  const waited = await ask(gate, "open");
  if (waited !== ids.length) throw new Error(`${waited} of ${ids.length} tasks waited`);
  for (const id of ids) while (!(await hasCompleted(agent, id)));
}

async function hasCompleted(agent: Endpoint, id: string): Promise<boolean> {
  const { status } = await call<{ status: { state: string } }>(agent, "GetTask", { id, historyLength: 0 });
  if (status.state === "TASK_STATE_COMPLETED") return true;
  if (status.state !== "TASK_STATE_WORKING") throw new Error(`a task ended as ${status.state}`);
  return false;
}

/** How many tasks wait at the gate. */
async function ask(gate: Endpoint, text: "count" | "open"): Promise<number> {
  const message = { messageId: `ask-${++asked}`, role: "ROLE_USER", parts: [{ text }] };
  const answer = await call(gate, "SendMessage", { message });
  return Number(/waiting: (\d+)\./.exec(JSON.stringify(answer))![1]);
}

let asked = 0;
