import { writeFile } from "node:fs/promises";
import { runLoad, sends } from "../client/load.ts";
import type { Endpoint } from "../client/requests.ts";
import { withServedConfig } from "../contestants/served-config.ts";
import type { Sample } from "../measures.ts";
import { type Context, type Scenario, withContestant } from "../scenario.ts";

const connections = 64;
const counts = { warmUp: 10_000, measured: 15_000, quick: 500 };

/** How the gateway calls the agent; the caller always speaks A2A 1.0 over JSON-RPC. */
const HOPS = {
  "to 1.0 JSON-RPC": { dialect: "a2a-v1", binding: "JSONRPC" },
  "to 1.0 gRPC": { dialect: "a2a-v1", binding: "GRPC" },
  "to 0.3 JSON-RPC": { dialect: "a2a-v03", binding: "JSONRPC" },
  "to 0.1": { dialect: "a2a-v01" },
  "to tasks-rest": { dialect: "tasks-rest" },
};

export const gateway: Scenario = {
  name: "gateway",
  title: `blocking send through a remote agent, ${connections} connections, in memory`,
  setup:
    "`dragoman serve` of the built package. Direct: it serves the built-in echo agent. Others: it serves a remote agent, which is an echo agent " +
    "in another process that is not measured; each task is kept on both sides.",
  targets: [{ measure: "cpuMicros", of: "to 1.0 JSON-RPC", times: "direct", atMost: 2.2 }],
  async run(context, record) {
    for (let round = 0; round < context.rounds; round++) {
      record.add("direct", await measure(context, { use: "echo" }));
      await withContestant("dragoman", { agent: "echo", store: "memory:" }, async ({ path, port }) => {
        for (const [label, how] of Object.entries(HOPS)) {
          record.add(label, await measure(context, { remote: `http://127.0.0.1:${port}${path}`, ...how }));
        }
      });
    }
  },
};

async function measure(context: Context, agent: object): Promise<Sample> {
  const config = context.workspace.path("gateway.json");
  const server = { host: "127.0.0.1", port: 0 };
  await writeFile(config, JSON.stringify({ server, store: "memory:", agents: { agent } }));
  return withServedConfig(config, async ({ address, cpu }) => {
    const endpoint: Endpoint = { port: Number(new URL(address).port), path: "/agents/agent" };
    await runLoad(endpoint, { connections, count: context.size(counts.warmUp, counts.quick) }, sends);
    const before = await cpu();
    const { completed, seconds } = await runLoad(
      endpoint,
      { connections, count: context.size(counts.measured, counts.quick) },
      sends,
    );
    return { cpuMicros: ((await cpu()) - before) / completed, perSecond: completed / seconds };
  });
}
