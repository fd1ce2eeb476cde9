import { writeFile } from "node:fs/promises";
import { withServedConfig } from "../contestants/served-config.ts";
import type { Scenario } from "../scenario.ts";
import type { Workspace } from "../workspace.ts";

/** As people write it. */
const toYaml = (server: object, store: string, agents: readonly string[]) =>
  [
    "server:",
    ...Object.entries(server).map(([key, value]) => `  ${key}: ${value}`),
    `store: ${JSON.stringify(store)}`,
    "agents:",
    ...agents.map((name) => `  ${name}:\n    use: echo`),
    "",
  ].join("\n");

/** As programs do. */
const toJson = (server: object, store: string, agents: readonly string[]) =>
  JSON.stringify({ server, store, agents: Object.fromEntries(agents.map((name) => [name, { use: "echo" }])) });

export const startUp: Scenario = {
  name: "start-up",
  title: "dragoman serve until ready: an empty store, one with 1,000,000 tasks, a configuration of 10,000 agents",
  setup:
    "`dragoman serve` of the built package beside itself; CPU of the process until `/readyz` answers 200. Configurations are YAML, " +
    "but many agents are listed by programs, which write JSON; the same in YAML is recorded for comparison.",
  targets: [
    { measure: "cpuMillis", of: "empty store", alone: true, atMost: 350 },
    { measure: "cpuMillis", of: "many tasks", plus: "empty store", atMost: 50 },
    { measure: "cpuMillis", of: "many agents", alone: true, atMost: 1_000 },
  ],
  async run(context, record) {
    const { workspace } = context;
    const filled = await workspace.filledStore(context.size(1_000_000, 2_000));
    const one = ["echo"];
    const many = Array.from({ length: context.size(10_000, 1_000) }, (_, index) => `echo-${index}`);
    for (let round = 0; round < context.rounds; round++) {
      record.add("empty store", await startOnce(workspace, workspace.newStore("sqlite"), one, toYaml));
      record.add("many tasks", await startOnce(workspace, filled, one, toYaml));
      record.add("many agents", await startOnce(workspace, workspace.newStore("sqlite"), many, toJson));
      record.add("many agents, YAML", await startOnce(workspace, workspace.newStore("sqlite"), many, toYaml));
    }
  },
};

async function startOnce(
  workspace: Workspace,
  store: string,
  agents: readonly string[],
  write: typeof toYaml,
): Promise<{ cpuMillis: number }> {
  const config = workspace.path("dragoman.yaml");
  // Any free ports: a port found free beforehand may be taken by the time it is needed, and so may the next one.
  const server = { host: "127.0.0.1", port: 0 };
  await writeFile(config, write(server, store, agents));
  return withServedConfig(config, async ({ cpu }) => ({ cpuMillis: (await cpu()) / 1000 }));
}
