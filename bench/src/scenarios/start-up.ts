import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { complaintOf, nextReply } from "../contestants/launch.ts";
import type { Scenario } from "../scenario.ts";
import type { Workspace } from "../workspace.ts";

/** A server that takes longer to start, be measured and stop is killed, which ends all waits for it. */
const deadlineMillis = 60_000;

/** Preloaded into the measured process; replies to any message with the CPU time used so far. */
const probe = `data:text/javascript,${encodeURIComponent(
  'process.on("message", () => { const { user, system } = process.cpuUsage(); process.send({ cpu: user + system }); }); process.channel.unref();',
)}`;

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
  const child = fork(await commandFile(), ["serve", config], {
    execArgv: ["--import", probe],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const complaint = complaintOf(child);
  const exit = once(child, "exit");
  const deadline = setTimeout(() => child.kill("SIGKILL"), deadlineMillis);
  try {
    await untilReady(child, await addressOf(child));
    const answer = nextReply(child, "cpu", complaint);
    child.send("cpu");
    return { cpuMillis: (await answer).cpu / 1000 };
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(`dragoman serve: ${what}: ${complaint()}`);
  } finally {
    child.kill("SIGTERM");
    await exit;
    clearTimeout(deadline);
  }
}

/** The address that the server prints at start-up. */
function addressOf({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = "";
    stdout?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      const address = /listens on (\S+)\n/.exec(printed)?.[1];
      if (address !== undefined) resolve(address);
    });
    stdout?.on("end", () => reject(new Error("ended before it listened")));
  });
}

async function untilReady(child: ChildProcess, address: string): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const ready = await fetch(`${address}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`ended with ${child.exitCode ?? child.signalCode}`);
}

async function commandFile(): Promise<string> {
  const manifest = createRequire(import.meta.url).resolve("dragoman/package.json");
  const { bin }: { bin: Record<string, string> } = JSON.parse(await readFile(manifest, "utf8"));
  return join(dirname(manifest), bin.dragoman!);
}
