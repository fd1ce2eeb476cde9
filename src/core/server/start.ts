import { resolve } from "node:path";
import { findMissingProgram } from "../agents/process/find-program.ts";
import type { Agent } from "../engine/agent.ts";
import type { Log } from "../model/ports.ts";
import { ConfigError } from "../yaml/problems.ts";
import type { ModuleSource, ProcessSource } from "./config/agent-kinds.ts";
import {
  buildAgents,
  type ConfigOverrides,
  type DragomanConfig,
  environmentFor,
  loadConfig,
  sectionWarnings,
} from "./config/index.ts";
import { collectConfigSecrets } from "./config/secrets.ts";
import { watchModules } from "./config/watch-modules.ts";
import { createLog } from "./logging/log.ts";
import { type DragomanServer, type ServeOptions, serve } from "./serve.ts";
import { createWatchdog, type Watchdog } from "./watchdog.ts";

/** Longer than tasks are given to end when the server is stopped. */
const MAX_CLOSE_MS = 30_000;

/**
 * A missing `await` in an agent must not abort the tasks of other agents: an unhandled rejection is only logged. After
 * an uncaught exception the state is unreliable, so the server is shut down gracefully. Returns a function that removes
 * the handlers.
 */
function handleUncaughtErrors(log: Log, close: () => Promise<void>): () => void {
  const onRejection = (error: unknown) => {
    log.error({ err: error }, "Unhandled promise rejection; probably an agent forgot an await.");
  };
  const onException = (error: unknown) => {
    log.error({ err: error }, "An exception was not caught by anyone; the server is shut down.");
    process.exitCode = 1;
    // Closing may be what fails: then other processes must not wait for this one, nor its port stay taken.
    setTimeout(() => process.exit(1), MAX_CLOSE_MS).unref();
    close().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  };
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
  };
}

export interface StartOptions {
  readonly configFile: string;
  readonly overrides?: ConfigOverrides & { readonly pretty?: boolean };
  /** Reload agents when their modules or the configuration change. */
  readonly watch?: boolean;
}

/** Serves a configuration file. */
export async function startServer(options: StartOptions): Promise<DragomanServer> {
  const { pretty, ...overrides } = options.overrides ?? {};
  const environment = await environmentFor(options.configFile);
  // Modules and programs also see the variables of the `.env` file.
  Object.assign(process.env, environment);
  const config = await loadConfig(options.configFile, environment, overrides);
  if (config.sections.registry === false && (overrides.registerWith ?? []).length > 0) throw registryIsOff();
  const isPretty = config.log.pretty ?? pretty ?? false;
  const log = await createLog({ level: config.log.level, pretty: isPretty, secrets: collectConfigSecrets(config) });
  warnAboutMissingPrograms(config, log);
  for (const [, warning] of sectionWarnings(config)) log.warn({ store: config.store }, warning);
  const agents = await buildAgents(config, { log });
  const watchdog = createConfiguredWatchdog(config, isPretty, log);
  const monitor = watchdog && { monitor: watchdog.monitor };
  const server = await serve({ ...toServeOptions(config, agents), log, ...monitor });
  watchdog?.start();
  if (isWildcard(config.server.host) && config.server.publicUrl === undefined) {
    log.warn(
      { url: server.url },
      "Cards name this address; set server.publicUrl if callers reach the server elsewhere.",
    );
  }
  log.info(
    { url: server.url, grpc: server.grpc, store: server.store, agents: [...config.agents.keys()] },
    "Listening.",
  );
  const unguard = handleUncaughtErrors(log, () => server.close());
  const release = () => {
    unguard();
    watchdog?.stop();
  };
  server.closed.then(release, release);
  if (options.watch !== true) return server;
  const stopWatching = watchModules(config, server, log, {
    file: resolve(options.configFile),
    load: () => loadConfig(options.configFile, process.env, overrides),
  });
  server.closed.then(stopWatching, stopWatching);
  return server;
}

function createConfiguredWatchdog(config: DragomanConfig, isPretty: boolean, log: Log): Watchdog | undefined {
  const { watchdogMs } = config.server;
  if (watchdogMs === false) return undefined;
  const agentFiles = [...config.agents].flatMap(([name, { kind, source }]) =>
    kind === "module" ? [[(source as ModuleSource).file, name] as const] : [],
  );
  const form = config.log.level === "silent" ? "silent" : isPretty ? "pretty" : "json";
  return createWatchdog({ limitMs: watchdogMs, agentFiles, form, log });
}

/** Only a warning: each run looks for its program again, so one that is installed later is found. */
function warnAboutMissingPrograms(config: DragomanConfig, log: Log): void {
  for (const [agent, { kind, source }] of config.agents) {
    if (kind !== "exec") continue;
    const missing = findMissingProgram(source);
    const [program] = (source as ProcessSource).command;
    if (missing !== undefined) log.warn({ agent, program }, `Every task of agent ${agent} will fail: ${missing}`);
  }
}

function registryIsOff(): ConfigError {
  const message = "is false, so that agents cannot be registered elsewhere either (--register)";
  return new ConfigError([{ source: "command line", line: undefined, column: undefined, path: "registry", message }]);
}

const isWildcard = (host: string) => host === "0.0.0.0" || host === "::";

export function toServeOptions(config: DragomanConfig, agents: ReadonlyMap<string, Agent>): ServeOptions {
  const { folder, log, findOrigins, push, sections, server, ...options } = config;
  const { watchdogMs, ...reached } = server;
  const { enabled, ...notified } = push;
  const built = Object.fromEntries(agents);
  return { ...sections, ...options, ...reached, agents: built, baseDirectory: folder, push: enabled && notified };
}
