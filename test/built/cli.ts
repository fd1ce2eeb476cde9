/** The command line as it is published: the build, in a process of its own, in an environment that holds no settings. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
export const CLI = join(ROOT, "dist", "cli", "main.js");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly folder?: string;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function cleanEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(A2ACLI_|FORCE_COLOR|NODE_OPTIONS|VITEST|PORT$)/.test(entry[0]),
  );
  // A proxy of the machine has no business with a server on the machine.
  return { ...Object.fromEntries(kept), HOME: tmpdir(), no_proxy: "127.0.0.1,localhost", ...extra };
}

export async function runProgram(
  program: string,
  values: readonly string[],
  options: RunOptions = {},
): Promise<Finished> {
  const child = spawn(program, values, {
    cwd: options.folder ?? ROOT,
    env: cleanEnvironment(options.environment),
    stdio: "pipe",
  });
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, stdout: stdout(), stderr: stderr() };
}

export function runCli(words: readonly string[], options?: RunOptions): Promise<Finished> {
  requireBuild();
  return runProgram(process.execPath, [CLI, ...words], options);
}

export interface ServedProcess {
  readonly url: string;
  /** All it has said on stdout. */
  readonly banner: string;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** `dragoman serve` on a free port, with tasks in memory. Resolves when it says where it listens. */
export async function serveConfig(
  config: string,
  cli: string = CLI,
  more: readonly string[] = [],
): Promise<ServedProcess> {
  if (cli === CLI) requireBuild();
  const words = ["serve", config, "--port", "0", "--store", "memory:", "--log-level", "warn", ...more];
  const child = spawn(process.execPath, [cli, ...words], { cwd: ROOT, env: cleanEnvironment(), stdio: "pipe" });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const found = /listens on (http:\S+)[\s\S]*\n\n/.exec(stdout());
      if (found?.[1] !== undefined) resolve(found[1]);
    });
    child.once("error", reject);
    void ended.then((code) => reject(new Error(`It ended with ${code}: ${stderr()}`)));
  });
  return { url, banner: stdout(), stop: (signal) => stop(child, ended, signal) };
}

function stop(
  child: ChildProcess,
  ended: Promise<number | null>,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<number | null> {
  child.kill(signal);
  return ended;
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

export function requireBuild(): void {
  if (!existsSync(CLI)) throw new Error("There is no build to test; npm test makes one, or run npm run build.");
}
