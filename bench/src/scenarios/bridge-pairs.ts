import { writeFile } from "node:fs/promises";
import { runGrpcLoad } from "../client/grpc-load.ts";
import { requests, runLoad } from "../client/load.ts";
import type { Endpoint } from "../client/requests.ts";
import { withServedConfig } from "../contestants/served-config.ts";
import type { Sample } from "../measures.ts";
import { type Context, type Recorder, type Scenario, withContestant } from "../scenario.ts";
import { median } from "../statistics.ts";
import { apiKey, dialectSends } from "./dialects.ts";

const connections = 16;
const counts = { warmUp: 300, measured: 600, alone: 100, quick: 10 };

interface Side {
  /** How the gateway calls an agent in it. */
  remote: object;
  /** Below the address of the agent. */
  path?: string;
  /** The request of a caller; absent: over gRPC. */
  send?: string;
}

/** Dialects of callers and of agents. */
const dialects: Readonly<Record<string, Side>> = {
  "1.0 JSON-RPC": { remote: { dialect: "a2a-v1", binding: "JSONRPC" }, send: "1.0 JSON-RPC" },
  "1.0 REST": { remote: { dialect: "a2a-v1", binding: "HTTP+JSON" }, send: "1.0 REST" },
  "1.0 gRPC": { remote: { dialect: "a2a-v1", binding: "GRPC" } },
  "0.3 JSON-RPC": { remote: { dialect: "a2a-v03", binding: "JSONRPC" }, send: "0.3 JSON-RPC" },
  "0.1": { remote: { dialect: "a2a-v01" }, send: "0.1 JSON-RPC" },
  "tasks-rest": { remote: { dialect: "tasks-rest" }, send: "tasks-rest" },
  "xiaoyi-http": {
    remote: { dialect: "xiaoyi-http", credentials: { bearer: apiKey } },
    path: "/agent/message",
    send: "Xiaoyi HTTP, a session per connection",
  },
};

const names = Object.keys(dialects);

const direct = "direct";
/** The agents of the gateway: one that it runs itself, and the same agent elsewhere, called in each dialect. */
const columns = [direct, ...names];
const agentOf = (column: string) => `agent-${columns.indexOf(column)}`;
const labelOf = (caller: string, column: string) => `${caller} → ${column}`;

export const bridgePairs: Scenario = {
  name: "bridge-pairs",
  title: `blocking send through a gateway, dialect of the caller → dialect of the agent, ${connections} connections, in memory`,
  setup:
    "`dragoman serve` of the built package, one process for each caller. Direct: it runs the built-in echo agent itself. Others: the agent " +
    "is an echo agent in another process, which is not measured, so CPU is what the gateway adds. p50 is that of one connection, and what is " +
    "added to it is the difference to direct in the same round.",
  targets: [],
  grid: ["cpuMicros", "addedMillis"],
  async run(context, record) {
    const xiaoyi = { http: [{ agent: "echo", apiKey }] };
    for (let round = 0; round < context.rounds; round++) {
      await withContestant("dragoman", { agent: "echo", store: "memory:", options: { xiaoyi } }, async (upstream) => {
        for (const caller of round % 2 === 0 ? names : names.toReversed()) {
          await measureCaller(context, record, caller, upstream);
        }
      });
    }
  },
};

async function measureCaller(context: Context, record: Recorder, caller: string, upstream: Endpoint) {
  const config = context.workspace.path("bridge-pairs.json");
  await writeFile(config, JSON.stringify(configFor(upstream)));
  await withServedConfig(config, async ({ cpu, grpcPort, port }) => {
    const load = (column: string, concurrent: number, count: number, latencies?: number[]) =>
      send(caller, { port, path: `/agents/${agentOf(column)}`, grpcPort }, { concurrent, count, latencies });
    // All of them before any is measured: they share most of their code.
    for (const column of columns) await load(column, connections, context.size(counts.warmUp, counts.quick));
    let directMillis = Number.NaN;
    for (const column of columns) {
      const before = await cpu();
      const { completed, seconds } = await load(column, connections, context.size(counts.measured, counts.quick));
      const cpuMicros = ((await cpu()) - before) / completed;
      const latencies: number[] = [];
      await load(column, 1, context.size(counts.alone, counts.quick), latencies);
      const p50Millis = median(latencies);
      const sample: Sample = { cpuMicros, perSecond: completed / seconds, p50Millis };
      if (column === direct) directMillis = p50Millis;
      else sample.addedMillis = p50Millis - directMillis;
      record.add(labelOf(caller, column), sample);
    }
  });
}

function configFor({ path, port }: Endpoint): object {
  const upstream = `http://127.0.0.1:${port}${path}`;
  const remotes = Object.entries(dialects).map(([name, { path: below = "", remote }]) => {
    return [agentOf(name), { remote: upstream + below, ...remote }];
  });
  const agents = { [agentOf(direct)]: { use: "echo" }, ...Object.fromEntries(remotes) };
  return {
    server: { host: "127.0.0.1", port: 0 },
    store: "memory:",
    agents,
    xiaoyi: { http: Object.keys(agents).map((agent) => ({ agent, apiKey })) },
  };
}

interface Amount {
  concurrent: number;
  count: number;
  latencies: number[] | undefined;
}

function send(caller: string, endpoint: Endpoint, { concurrent, count, latencies }: Amount) {
  const timed = latencies && { latencies };
  const { send: how } = dialects[caller]!;
  if (how !== undefined) {
    const { mark, request } = dialectSends[how]!;
    return runLoad(endpoint, { connections: concurrent, count, ...timed }, requests(request, mark));
  }
  const { grpcPort = Number.NaN, path } = endpoint;
  const sessions = Math.min(concurrent, 4);
  const load = { method: "SendMessage", text: "hello", textBytes: 0 } as const;
  const tenant = path.slice("/agents/".length);
  return runGrpcLoad({ ...load, port: grpcPort, tenant, sessions, callsEach: concurrent / sessions, ...timed }, count);
}
