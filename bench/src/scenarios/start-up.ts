import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { reasonIn } from "../contestants/launch.ts";
import type { Scenario } from "../scenario.ts";
import type { Workspace } from "../workspace.ts";

const deadlineMillis = 60_000;

/** Loaded into the measured process ahead of it; answers any message with the CPU used so far. */
const probe = `data:text/javascript,${encodeURIComponent(
  'process.on("message", () => { const { user, system } = process.cpuUsage(); process.send(user + system); }); process.channel.unref();',
)}`;

export const startUp: Scenario = {
  name: "start-up",
  title: "dragoman serve until ready, on an empty store and on one with 100,000 tasks",
  targets: [
    { measure: "cpuMillis", of: "empty store", alone: true, atMost: 400 },
    { measure: "cpuMillis", of: "100,000 tasks", plus: "empty store", atMost: 100 },
  ],
  async run(context, record) {
    const filled = await context.workspace.filledStore(context.size(100_000, 1_000));
    for (let round = 0; round < context.rounds; round++) {
      record.add("empty store", await startOnce(context.workspace, context.workspace.newStore("sqlite")));
      record.add("100,000 tasks", await startOnce(context.workspace, filled));
    }
  },
};

async function startOnce(workspace: Workspace, store: string): Promise<{ cpuMillis: number }> {
  const port = await freePort();
  const config = workspace.path("dragoman.yaml");
  const server = { host: "127.0.0.1", port };
  await writeFile(config, JSON.stringify({ server, store, agents: { echo: { use: "echo" } } }));
  const child = fork(await commandFile(), ["serve", config], {
    execArgv: ["--import", probe],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-2000);
  });
  const exit = once(child, "exit");
  try {
    await untilReady(child, port);
    const answer = once(child, "message");
    child.send("cpu");
    const [micros] = await answer;
    return { cpuMillis: Number(micros) / 1000 };
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(`dragoman serve: ${what}: ${reasonIn(complaint)}`);
  } finally {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await exit;
    clearTimeout(timer);
  }
}

async function untilReady(child: ChildProcess, port: number): Promise<void> {
  const deadline = performance.now() + deadlineMillis;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`not ready within ${deadlineMillis / 1000} s`);
}

async function commandFile(): Promise<string> {
  const manifest = createRequire(import.meta.url).resolve("dragoman/package.json");
  const { bin }: { bin: Record<string, string> } = JSON.parse(await readFile(manifest, "utf8"));
  return join(dirname(manifest), bin.dragoman!);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
