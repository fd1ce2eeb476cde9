import { type Acts, type LoadResult, requests, runLoad } from "../client/load.ts";
import { message, rpc, uniqueId } from "../client/requests.ts";
import type { Contestant } from "../contestants/launch.ts";
import { chainLengths, chainSteps } from "../contestants/protocol.ts";
import type { Sample } from "../measures.ts";
import { type Context, compare, costOf, type Entry, inTurn, type Scenario, withContestant } from "../scenario.ts";
import { median } from "../statistics.ts";
import type { Target } from "../verdict.ts";

const connections = 16;
const completed = "TASK_STATE_COMPLETED";
const stores = ["memory", "sqlite"] as const;
const server = { contestant: "dragoman-workflow", agent: "echo" } as const;
const sendTo = (agent: string): Acts => requests({ path: `/${agent}`, ...message("hello") }, completed);

/** What calls the three agents. */
interface Way {
  label: string;
  /** Runs the chain so often, so many at a time. */
  run(contestant: Contestant, count: number, concurrent: number, latencies?: number[]): Promise<LoadResult>;
  /** The calling process does part of the work. */
  countsCaller?: true;
  /** Fraction of the counts. Default: 1. */
  share?: number;
}

const script: Acts = (endpoint, index) => {
  const steps = chainSteps.map((step) => sendTo(step)(endpoint, index));
  return async (connection) => {
    for (const step of steps) await step(connection);
    return 1;
  };
};

const load =
  (acts: Acts): Way["run"] =>
  (contestant, count, concurrent, latencies) =>
    runLoad(contestant, { connections: concurrent, count, ...(latencies && { latencies }) }, acts);

const ways: readonly Way[] = [
  { label: "script, raw HTTP", run: load(script) },
  { label: "script, Dragoman client", run: runClientScript, countsCaller: true, share: 0.3 },
  { label: "workflow", run: load(sendTo("chain")) },
];

async function runClientScript({ path, port }: Contestant, count: number, concurrent: number, latencies?: number[]) {
  // Not before it is needed: the list of scenarios can be read without a built package.
  const { connect } = await import("dragoman/client");
  const agents = await Promise.all(chainSteps.map((step) => connect(`http://127.0.0.1:${port}${path}/${step}`)));
  const start = performance.now();
  let left = count;
  const work = async () => {
    while (left-- > 0) {
      const sent = performance.now();
      let text = "hello";
      for (const agent of agents) {
        const outcome = await agent.send(text);
        const part = "task" in outcome ? outcome.task.artifacts?.[0]?.parts[0] : undefined;
        if (part === undefined || !("text" in part)) throw new Error(`unexpected answer: ${JSON.stringify(outcome)}`);
        text = part.text;
      }
      latencies?.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, work));
  return { completed: count, frames: count, seconds: (performance.now() - start) / 1000 };
}

const counts = { warmUp: 1_000, measured: 1_500, alone: 100, quick: 20 };

export const workflowChain: Scenario = {
  name: "workflow",
  title: `a chain of three agents, outline → document → summary, ${connections} at a time; CPU per step, p50 of a whole chain alone`,
  setup:
    "Echo agents, so that what is measured is what is around them; each step gets the text that the one before returned. Workflow: one " +
    "blocking send to the workflow, whose agents are in the same process. Scripts: three blocking sends to the same agents on the same kind of " +
    "server, one after another; raw HTTP costs the server only, the client of Dragoman also the CPU of the calling process.",
  targets: [
    { measure: "cpuMicros", of: "workflow, memory", times: "script, raw HTTP, memory", atMost: 4.5 },
    { measure: "cpuMicros", of: "workflow, sqlite", times: "script, raw HTTP, sqlite", atMost: 6 },
  ],
  async run(context, record) {
    const entries = stores.flatMap((store) =>
      ways.map((way): Entry & { way: Way } => ({ ...server, label: `${way.label}, ${store}`, store, way })),
    );
    await compare(context, record, entries, (contestant, { label }) =>
      measureWay(context, contestant, entries.find((entry) => entry.label === label)!.way),
    );
  },
};

async function measureWay(context: Context, contestant: Contestant, way: Way): Promise<Sample> {
  const { countsCaller, run, share = 1 } = way;
  const size = (count: number) => Math.ceil(context.size(count, counts.quick) * share);
  const measured = size(counts.measured);
  const steps = chainSteps.length;
  await run(contestant, size(counts.warmUp), connections);
  const before = process.cpuUsage();
  const cost = await costOf(contestant, () => run(contestant, measured, connections), steps);
  const { system, user } = process.cpuUsage(before);
  const ofCaller = countsCaller ? (system + user) / (measured * steps) : 0;
  const latencies: number[] = [];
  await run(contestant, size(counts.alone), 1, latencies);
  return { ...cost, cpuMicros: cost.cpuMicros! + ofCaller, p50Millis: median(latencies) };
}

/** Steps or items of one run: few and many. */
const shapes = [
  { label: "chain", sizes: chainLengths, request: (steps: number) => ({ path: `/chain-${steps}`, ...send("hello") }) },
  { label: "foreach", sizes: [200, 2_000], request: (items: number) => ({ path: "/each", ...send(itemsOf(items)) }) },
] as const;

const itemsOf = (count: number) => Array.from({ length: count }, (_, index) => `item ${index}`);
const send = (content: string | string[]) =>
  rpc("SendMessage", {
    message: {
      messageId: uniqueId,
      role: "ROLE_USER",
      parts: [typeof content === "string" ? { text: content } : { data: content }],
    },
    configuration: { historyLength: 0 },
  });

const sizeLabel = (shape: string, size: number, store: string) => `${shape} of ${size.toLocaleString("en")}, ${store}`;

export const workflowSize: Scenario = {
  name: "workflow-size",
  title: "workflows of few and of many steps, of a loop with few and with many items; CPU per step or item",
  setup:
    "Dragoman beside itself, in turn on one warm server; echo agents, one run at a time, the answers leave the history out.",
  targets: stores.flatMap((store) =>
    shapes.map(({ label, sizes: [few, many] }): Target => {
      const times = sizeLabel(label, few!, store);
      return { measure: "cpuMicros", of: sizeLabel(label, many!, store), times, atMost: 1.2 };
    }),
  ),
  async run(context, record) {
    const [steps, most] = [context.size(2_000, 200), context.size(2_000, 200)];
    for (const store of stores) {
      await withContestant(server.contestant, { ...server, store: context.workspace.newStore(store) }, (contestant) => {
        const measurements = shapes.flatMap(({ label, request, sizes }) =>
          sizes.map((size) => {
            const each = Math.min(size, most);
            const acts = requests(request(each), completed);
            const run = () => runLoad(contestant, { connections: 1, count: Math.ceil(steps / each) }, acts);
            return [sizeLabel(label, size, store), () => costOf(contestant, run, each)] as const;
          }),
        );
        return inTurn(context, record, Object.fromEntries(measurements));
      });
    }
  },
};
