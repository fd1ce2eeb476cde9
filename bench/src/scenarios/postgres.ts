import { type Acts, type LoadResult, runLoad, sends, streams } from "../client/load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { chunkBytes } from "../contestants/protocol.ts";
import type { Sample } from "../measures.ts";
import { type Context, compare, costOf, type Entry, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";

const chunks = 200;

interface Work {
  readonly name: string;
  readonly title: string;
  readonly agent: "echo" | "stream";
  readonly acts: Acts;
  readonly connections: number;
  readonly counts: { readonly warmUp: number; readonly measured: number; readonly quick: number };
  /** Fraction of the work that the SDK does. */
  readonly share: number;
  /** Events of one request that are written to the log. */
  readonly events: number;
}

const sending: Work = {
  name: "postgres",
  title: "blocking send on PostgreSQL, 64 connections",
  agent: "echo",
  acts: sends,
  connections: 64,
  counts: { warmUp: 10_000, measured: 20_000, quick: 500 },
  share: 0.1,
  events: 3,
};

const streaming: Work = {
  name: "postgres-stream",
  title: `streaming send on PostgreSQL, ${chunks} chunks of ${chunkBytes} bytes written at once, 8 streams; per stream`,
  agent: "stream",
  acts: streams(chunks),
  connections: 8,
  counts: { warmUp: 500, measured: 800, quick: 20 },
  share: 0.02,
  events: chunks + 2,
};

const setup =
  "Both answer A2A 1.0 over JSON-RPC; one PostgreSQL server with its usual settings on the same machine and disk. @a2a-js/sdk has its " +
  "own store, DatabaseTaskStore, on the driver that Dragoman uses. CPU of the database is that of all its processes.";

/** Measures the server as always, and the database beside it. */
export async function costOnDatabase(
  context: Context,
  servers: readonly Contestant[],
  work: () => Promise<LoadResult>,
): Promise<Sample> {
  const { database } = context.workspace;
  const before = database.cpu();
  const [first, ...others] = servers;
  const otherCpu = async () => (await Promise.all(others.map((one) => one.cpu()))).reduce((sum, cpu) => sum + cpu, 0);
  const othersBefore = await otherCpu();
  let completed = 0;
  const sample = await costOf(first!, async () => {
    const result = await work();
    completed = result.completed;
    return result;
  });
  const { cpuMicros = 0, perSecond = 0 } = sample;
  return {
    cpuMicros: cpuMicros + ((await otherCpu()) - othersBefore) / completed,
    databaseCpuMicros: (database.cpu() - before) / completed,
    perSecond,
  };
}

function againstSdk(work: Work, targets: readonly Target[]): Scenario {
  const { agent, acts, connections, counts, share } = work;
  const entries: readonly Entry[] = [
    { label: "dragoman", contestant: "dragoman", agent, store: "postgres" },
    { label: "a2a-js", contestant: "a2a-js", agent, store: "postgres", share },
  ];
  return {
    name: work.name,
    title: work.title,
    setup,
    targets,
    async run(context, record) {
      await context.workspace.startDatabase();
      await compare(context, record, entries, async (contestant, entry) => {
        const sizeOf = (full: number) => Math.ceil(context.size(full, counts.quick) * (entry.share ?? 1));
        await runLoad(contestant, { connections, count: sizeOf(counts.warmUp) }, acts);
        const count = sizeOf(counts.measured);
        return costOnDatabase(context, [contestant], () => runLoad(contestant, { connections, count }, acts));
      });
    },
  };
}

export const postgresSend = againstSdk(sending, [
  { measure: "cpuMicros", of: "a2a-js", times: "dragoman", atLeast: 8 },
  { measure: "perSecond", of: "dragoman", times: "a2a-js", atLeast: 8 },
]);

export const postgresStream = againstSdk(streaming, [
  { measure: "cpuMicros", of: "a2a-js", times: "dragoman", atLeast: 8 },
]);

const processes = [1, 2, 4] as const;
const labelOf = ({ agent }: Work, count: number) =>
  `${agent === "echo" ? "sends" : "streams"}, ${count} process${count === 1 ? "" : "es"}`;

export const postgresNodes: Scenario = {
  name: "postgres-nodes",
  title: "durable events per second with 1, 2 and 4 processes on one PostgreSQL; CPU per event",
  setup:
    "Dragoman beside itself: the same load, spread evenly over the processes. They, the load and the database share the machine, so " +
    "what more processes gain ends where its cores are used up.",
  targets: [],
  async run(context, record) {
    await context.workspace.startDatabase();
    for (let round = 0; round < context.rounds; round++) {
      for (const work of [sending, streaming]) {
        for (const count of processes) {
          const store = context.workspace.newStore("postgres");
          record.add(
            labelOf(work, count),
            await withNodes(work.agent, store, count, (nodes) => measure(context, work, nodes)),
          );
        }
      }
    }
  },
};

async function measure(context: Context, work: Work, nodes: readonly Contestant[]): Promise<Sample> {
  const { acts, connections, counts, events } = work;
  const load = async (count: number): Promise<LoadResult> => {
    const options = { connections: Math.ceil(connections / nodes.length), count: Math.ceil(count / nodes.length) };
    const results = await Promise.all(nodes.map((node) => runLoad(node, options, acts)));
    const sum = (of: (result: LoadResult) => number) => results.reduce((all, result) => all + of(result), 0);
    return {
      completed: sum(({ completed }) => completed),
      frames: sum(({ frames }) => frames),
      seconds: Math.max(...results.map(({ seconds }) => seconds)),
    };
  };
  await load(context.size(counts.warmUp, counts.quick));
  const sample = await costOnDatabase(context, nodes, () => load(context.size(counts.measured, counts.quick)));
  const { cpuMicros = 0, databaseCpuMicros = 0, perSecond = 0 } = sample;
  return {
    cpuMicros: cpuMicros / events,
    databaseCpuMicros: databaseCpuMicros / events,
    perSecond: perSecond * events,
  };
}

/** The first one makes the tables. */
function withNodes<Result>(
  agent: Work["agent"],
  store: string,
  count: number,
  use: (nodes: readonly Contestant[]) => Promise<Result>,
  started: readonly Contestant[] = [],
): Promise<Result> {
  if (started.length === count) return use(started);
  return withContestant("dragoman", { agent, store }, (node) =>
    withNodes(agent, store, count, use, [...started, node]),
  );
}
