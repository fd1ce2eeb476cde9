import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { complaintOf, nextReply } from "./launch.ts";

/** A server that takes longer to get ready is killed, which ends all waits for it. */
const deadlineMillis = 60_000;

/** Preloaded into the measured process; replies to any message with the CPU time used so far. */
const probe = `data:text/javascript,${encodeURIComponent(
  'process.on("message", () => { const { user, system } = process.cpuUsage(); process.send({ cpu: user + system }); }); process.channel.unref();',
)}`;

/** A running `dragoman serve` of the built package. */
interface ServedConfig {
  readonly address: string;
  readonly port: number;
  readonly grpcPort: number;
  /** CPU microseconds that the process has used since its start. */
  cpu(): Promise<number>;
}

/** Runs `dragoman serve` with a configuration file, waits until it is ready, and stops it after use. */
export async function withServedConfig<Result>(
  config: string,
  use: (served: ServedConfig) => Promise<Result>,
): Promise<Result> {
  const child = fork(await commandFile(), ["serve", config], {
    execArgv: ["--import", probe],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const complaint = complaintOf(child);
  const exit = once(child, "exit");
  const deadline = setTimeout(() => child.kill("SIGKILL"), deadlineMillis);
  try {
    const { address, grpcPort } = await addressOf(child);
    await untilReady(child, address);
    clearTimeout(deadline);
    return await use({
      address,
      port: Number(new URL(address).port),
      grpcPort,
      async cpu() {
        const answer = nextReply(child, "cpu", complaint);
        child.send("cpu");
        return (await answer).cpu;
      },
    });
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(`dragoman serve: ${what}: ${complaint()}`);
  } finally {
    child.kill("SIGTERM");
    await exit;
    clearTimeout(deadline);
  }
}

/** The addresses that the server prints at start-up. */
function addressOf({ stdout }: ChildProcess): Promise<Pick<ServedConfig, "address" | "grpcPort">> {
  return new Promise((resolve, reject) => {
    let printed = "";
    stdout?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      const [, address, grpcPort] = /listens on (\S+)\ngRPC: \S+:(\d+)\n/.exec(printed) ?? [];
      if (address !== undefined) resolve({ address, grpcPort: Number(grpcPort) });
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

export async function commandFile(): Promise<string> {
  const manifest = createRequire(import.meta.url).resolve("dragoman/package.json");
  const { bin }: { bin: Record<string, string> } = JSON.parse(await readFile(manifest, "utf8"));
  return join(dirname(manifest), bin.dragoman!);
}
