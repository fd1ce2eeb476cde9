import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly stdin?: string;
  readonly environment?: Record<string, string>;
  readonly workingDirectory?: string;
}

const MAIN = fileURLToPath(new URL("../../../cli.ts", import.meta.url));
const TSX = import.meta.resolve("tsx");

const running = new Set<ChildProcessWithoutNullStreams>();

/** Kills processes that a failed test left running. */
export function stopAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Starts the CLI from its sources in a separate process, in an environment without settings. */
export function startCli(args: readonly string[], options: RunOptions = {}): ChildProcessWithoutNullStreams {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("A2ACLI_") && !/^(FORCE_COLOR|NODE_OPTIONS|VITEST)/.test(name),
  );
  const child = spawn(process.execPath, ["--import", TSX, MAIN, ...args], {
    env: { ...Object.fromEntries(inherited), HOME: "/nonexistent", ...options.environment },
    ...(options.workingDirectory === undefined ? {} : { cwd: options.workingDirectory }),
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = startCli(args, options);
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  return finished(child);
}

export async function finished(child: ChildProcessWithoutNullStreams): Promise<Finished> {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, stdout, stderr };
}
