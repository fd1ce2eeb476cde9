import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { get as getSecurely } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Attack } from "./attack.ts";

export interface Victim {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly ownPort: number;
  readonly directory: string;
  readonly prepared: string | undefined;
  /** It serves TLS. */
  readonly isSecure: boolean;
  readonly pid: number;
  /** Resident memory in bytes; 0 after the process has ended. */
  memory(): number;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

/** In the folder of the server. */
export const LOG_FOLDER = "log";

export const HONEST_KEY = "key-of-the-honest-caller-1234567890";
export const OTHER_KEY = "key-of-another-caller-1234567890-abc";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Starts the built server as an operator would, with credentials for two callers. */
export async function startVictim(attack: Attack, program: string): Promise<Victim> {
  const { config } = attack;
  const directory = await mkdtemp(join(tmpdir(), "dragoman-attack-"));
  const logs = join(directory, LOG_FOLDER);
  await mkdir(logs);
  const preparation = await attack.prepare?.(directory);
  const [httpPort, grpcPort, ownPort] = [await freePort(), await freePort(), await freePort()];
  const { server: more, ...sections } = config?.({ ownPort, directory }) ?? {};
  const settings = {
    server: { host: "127.0.0.1", port: httpPort, grpcPort, ...(more as object | undefined) },
    store: "sqlite:tasks.db",
    default: "echo",
    agents: { echo: { use: "echo" } },
    auth: {
      apiKeys: [
        { key: HONEST_KEY, owner: "honest" },
        { key: OTHER_KEY, owner: "other" },
      ],
    },
    ...sections,
    ...preparation?.config,
  };
  // JSON is YAML.
  const file = join(directory, "dragoman.yaml");
  await writeFile(file, JSON.stringify(settings), { mode: 0o600 });
  const log = await open(join(logs, "server.log"), "w");
  const server = spawn(process.execPath, [program, "serve", file], {
    cwd: directory,
    stdio: ["ignore", log.fd, log.fd],
  });
  await log.close();
  const pid = server.pid ?? 0;
  const hasEnded = () => server.exitCode !== null || server.signalCode !== null;
  const stop = async () => {
    await end(server, hasEnded);
    await preparation?.release();
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  };
  const isSecure = "tls" in settings.server;
  if (!(await isReady(httpPort, isSecure, hasEnded))) {
    const text = readFileSync(join(logs, "server.log"), "utf8");
    await stop();
    throw new Error(`The server did not start:\n${text}`);
  }
  const { prepared } = preparation ?? {};
  const place = { httpPort, grpcPort, ownPort, directory, prepared, isSecure, pid };
  return { ...place, memory: () => residentMemory(pid), hasEnded, stop };
}

async function isReady(port: number, isSecure: boolean, hasEnded: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 300 && !hasEnded(); tries++) {
    if (await isAnswering(port, isSecure)) return true;
    await delay(100);
  }
  return false;
}

function isAnswering(port: number, isSecure: boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { port, host: "127.0.0.1", path: "/readyz", rejectUnauthorized: false };
    (isSecure ? getSecurely : get)(options, (answer) => resolve(answer.resume().statusCode === 200)).on("error", () =>
      resolve(false),
    );
  });
}

async function end(server: ChildProcess, hasEnded: () => boolean): Promise<void> {
  if (hasEnded()) return;
  const ended = new Promise((resolve) => server.once("exit", resolve));
  // Nothing of it is kept, and a server under attack may take long to drain.
  server.kill("SIGKILL");
  await ended;
}

function residentMemory(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(kib ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
