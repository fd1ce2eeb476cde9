import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { setFlagsFromString } from "node:v8";
import { loadExtensions } from "../../extension/installed.ts";
import { hasErrorCode } from "../../model/errors.ts";
import type { DragomanConfig } from "../../server/config/index.ts";
import type { DragomanServer } from "../../server/serve.ts";
import { isSharedStore } from "../../store/open.ts";
import { CommandError, CommandExit, EXIT, type ExitCode } from "../errors.ts";
import { ifGiven, readHttpUrl, readInteger, readPort } from "../flag-values.ts";
import { ignoreOutputErrors, type Output } from "../output.ts";
import { quoteForShell, table } from "../render/text.ts";
import { packageVersion } from "../version.ts";

export interface ServeFlags {
  readonly port?: string;
  readonly grpcPort?: string;
  readonly host?: string;
  readonly watch?: boolean;
  readonly store?: string;
  readonly logLevel?: string;
  readonly register?: readonly string[];
  readonly workers?: string;
}

export async function serve(output: Output, config: string | undefined, flags: ServeFlags): Promise<void> {
  const configFile = config ?? findConfig();
  if (!existsSync(configFile)) throw missingConfigError(configFile);
  const overrides = {
    ...readAddress(flags),
    store: ifGiven(flags.store, resolveStore),
    logLevel: flags.logLevel,
    registerWith: (flags.register ?? []).map((url) => readHttpUrl("--register", url).href),
    pretty: output.stderrIsTerminal,
  };
  const start = async () => {
    limitHeapGrowth();
    const { startServer } = await import("../../server/start.ts");
    return startServer({ configFile, overrides, watch: flags.watch === true });
  };
  const { isWorker } = await import("../../server/workers/worker.ts");
  if (isWorker()) return runAsWorker(start);
  const workers = ifGiven(flags.workers, readWorkers);
  if (workers === undefined) return runUntilStopped(output, await start());
  const { loadConfig, environmentFor } = await import("../../server/config/index.ts");
  const loaded = await loadConfig(configFile, await environmentFor(configFile), overrides);
  checkSharedStore(loaded.store, workers);
  await runWorkers(output, loaded, workers);
}

/**
 * Garbage is collected when the heap has doubled. By default V8 waits until it has quadrupled where it fills fast, which
 * callers without credentials could bring about. Only for a process of our own: the settings of others are theirs.
 */
function limitHeapGrowth(): void {
  // Bun and Deno have no such setting.
  if ("bun" in process.versions || "deno" in process.versions) return;
  setFlagsFromString("--heap-growing-percent=100");
}

function readWorkers(text: string): number {
  return text === "auto" ? availableParallelism() : readInteger("--workers", text, 1, 1_024, " or auto");
}

/** Only a database that is a process of its own can be shared. */
function checkSharedStore(store: string, workers: number): void {
  if (workers === 1 || isSharedStore(store)) return;
  const reason = store.startsWith("sqlite:")
    ? "one process owns a SQLite file: it decides alone who runs which task, and others would wait for every write of it"
    : "tasks in memory belong to one process, so that the others would not find them";
  throw new CommandError(
    "DRAGOMAN_ERR_CONFIG",
    `${workers} workers cannot share the store ${store}: ${reason}.`,
    "Use a PostgreSQL store (store: postgres://…), or leave --workers out.",
  );
}

/** Serves the built-in agents from memory, for trying things out without leaving files behind. */
export async function demoServer(output: Output, flags: Pick<ServeFlags, "port">): Promise<void> {
  await loadExtensions("config");
  const { builtinAgents } = await import("../../server/config/agent-kinds.ts");
  const { serve } = await import("../../server/serve.ts");
  const built = [...builtinAgents()].map(async ([name, { create }]) => [name, await create({})] as const);
  const agents = Object.fromEntries(await Promise.all(built));
  // Webhooks of its users are on this machine, the only one from which this server can be called.
  const push = { allowPrivateTargets: true };
  const options = { agents, default: "echo", store: "memory:", push, log: false as const, ...readAddress(flags) };
  const server = await serve(options).catch((error: unknown) => {
    if (!hasErrorCode(error, "EADDRINUSE") || flags.port !== undefined) throw error;
    output.info("The usual port is taken; using a free one.");
    return serve({ ...options, port: 0, grpcPort: 0 });
  });
  await runUntilStopped(output, server);
}

/** A path in a flag is relative to the working directory, one in the configuration to the configuration's folder. */
function resolveStore(store: string): string {
  return store.startsWith("sqlite:") ? `sqlite:${resolve(store.slice("sqlite:".length))}` : store;
}

const CONFIG_FILES = ["dragoman.yaml", "dragoman.yml"];

export function findConfig(): string {
  return CONFIG_FILES.find((file) => existsSync(file)) ?? "dragoman.yaml";
}

export function missingConfigError(file: string): CommandError {
  return new CommandError(
    "DRAGOMAN_ERR_CONFIG",
    `Configuration not found: ${file}.`,
    "dragoman init creates a project with one; dragoman demo-server serves the built-in agents without one.",
  );
}

interface Address {
  readonly host?: string;
  readonly port?: number;
  readonly grpcPort?: number;
  readonly grpc?: false;
}

function readAddress({ host, port, grpcPort }: Pick<ServeFlags, "host" | "port" | "grpcPort">): Address {
  const common = { host, port: ifGiven(port, (text) => readPort("--port", text)) };
  if (grpcPort === undefined) return common;
  return grpcPort === "off"
    ? { ...common, grpc: false }
    : { ...common, grpcPort: readPort("--grpc-port", grpcPort, " or off") };
}

export type StartedServer = Pick<DragomanServer, "agents" | "close" | "closed" | "grpc" | "store" | "url">;

/** Prints what is served and waits until the server closes. The first signal drains running tasks; a second one exits. */
async function runUntilStopped(output: Output, server: StartedServer): Promise<void> {
  output.write(renderBanner(server));
  const close = (signal: NodeJS.Signals) => {
    server.close(signal).catch((error: unknown) => {
      output.info(`Shutdown failed: ${error instanceof Error ? error.message : String(error)}`);
      process.exit(EXIT.failure);
    });
  };
  await untilClosed(output, server.closed, close);
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

async function untilClosed(
  output: Output,
  closed: Promise<void>,
  close: (signal: NodeJS.Signals) => void,
  kill: () => void = () => {},
): Promise<void> {
  ignoreOutputErrors();
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) {
      kill();
      process.exit(signal === "SIGINT" ? EXIT.interrupted : 143);
    }
    stopping = true;
    output.info("Shutting down; waiting for running tasks. Press Ctrl-C again to quit now.");
    close(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    await closed;
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  }
}

/** Serves on ports that another process holds, which also says when to stop: a terminal signals both. */
async function runAsWorker(start: () => Promise<StartedServer>): Promise<void> {
  const { onStop, reportListening } = await import("../../server/workers/worker.ts");
  ignoreOutputErrors();
  const ignore = () => {};
  for (const signal of SIGNALS) process.on(signal, ignore);
  const server = await start();
  const end = onStop((reason) => {
    server.close(reason).catch(() => process.exit(EXIT.failure));
  });
  reportListening(renderBanner(server));
  await server.closed;
  end();
}

async function runWorkers(output: Output, { log: logging }: DragomanConfig, count: number): Promise<void> {
  const { createLog } = await import("../../server/logging/log.ts");
  const { createWorkers, WorkerFailedError } = await import("../../server/workers/primary.ts");
  const log = await createLog({
    level: logging.level,
    pretty: logging.pretty ?? output.stderrIsTerminal,
    secrets: [],
  });
  const workers = createWorkers(count, log);
  // Before the first one starts: a signal meanwhile ends those that have.
  const ended = untilClosed(output, workers.closed, workers.stop, workers.kill);
  const banner = await workers.start().catch((error: unknown) => {
    if (error instanceof WorkerFailedError) throw new CommandExit(error.exitCode as ExitCode);
    throw error;
  });
  if (banner !== undefined) output.write(`${banner}Workers: ${count}\n`);
  await ended;
}

/**
 * Addresses of agents end with a slash: clients that resolve the path of the card against them, as URLs are resolved,
 * would else look for it beside the agent.
 */
function renderBanner(server: Pick<StartedServer, "agents" | "grpc" | "store" | "url">): string {
  const agents = server.agents.map(({ isDefault, name, title, url }) => [
    isDefault ? `${name} (default)` : name,
    `${url}/`,
    title,
  ]);
  const first = server.agents.find((agent) => agent.isDefault) ?? server.agents[0];
  const examples =
    first === undefined
      ? ""
      : `\nTry:\n  npx dragoman send -a ${quoteForShell(`${first.url}/`)} --text hello\n  curl ${quoteForShell(first.cardUrl)}\n`;
  const grpc = server.grpc === undefined ? "" : `\ngRPC: ${server.grpc}`;
  return `dragoman ${packageVersion()} listens on ${server.url}${grpc}\nStore: ${server.store}\nAgents:\n${table(agents, "  ")}${examples}\n`;
}
