import { accessSync, constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import type { AgentSource, DragomanConfig } from "../server/config/index.ts";
import { StoreError } from "../store/errors.ts";

export interface Check {
  readonly name: string;
  /** `warning`: works, but not as one may expect. `skipped`: there was nothing to look at. */
  readonly status: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
}

type ProcessSource = Extract<AgentSource, { kind: "process" }>;

const OLDEST_NODE = [20, 19] as const;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  const good = major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
  const wanted = good ? "" : `; ${OLDEST_NODE.join(".")} or newer is needed`;
  return { name: "node", status: good ? "ok" : "failed", detail: `${version}${wanted}` };
}

export async function checkDriver(): Promise<Check> {
  try {
    const { openDriver } = await import("../store/sqlite/driver.ts");
    const driver = await openDriver(":memory:");
    const row = driver.prepare<{ version: string }>("SELECT sqlite_version() AS version").get();
    driver.close();
    return { name: "sqlite", status: "ok", detail: `SQLite ${row?.version ?? "of unknown version"}` };
  } catch (error) {
    return { name: "sqlite", status: "failed", detail: messageOf(error) };
  }
}

export async function checkConfig(file: string): Promise<{ readonly check: Check; readonly config?: DragomanConfig }> {
  const { loadConfig } = await import("../server/config/index.ts");
  try {
    const config = await loadConfig(file);
    const count = config.agents.size === 1 ? "1 agent" : `${config.agents.size} agents`;
    return { check: { name: "configuration", status: "ok", detail: `${file}, ${count}` }, config };
  } catch (error) {
    return { check: { name: "configuration", status: "failed", detail: messageOf(error) } };
  }
}

/** Whether a server could listen there. A dragoman that already does is what one usually wants to find. */
export async function checkPort(host: string, port: number): Promise<Check> {
  if (port === 0) return { name: "port", status: "ok", detail: "any free one" };
  const problem = await tryListen(host, port);
  if (problem === undefined) return { name: "port", status: "ok", detail: `${host}:${port} is free` };
  if (problem === "EADDRINUSE" && (await isOurs(host, port))) {
    return { name: "port", status: "warning", detail: `a dragoman already listens on ${host}:${port}` };
  }
  const why = problem === "EADDRINUSE" ? "is used by another program" : `cannot be used (${problem})`;
  return { name: "port", status: "failed", detail: `${host}:${port} ${why}` };
}

function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function isOurs(host: string, port: number): Promise<boolean> {
  const reachable =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  try {
    const answer = await fetch(`http://${reachable}:${port}/healthz`, { signal: AbortSignal.timeout(2000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/** Looks without touching: neither creates the file nor changes its schema. */
export async function checkStore(spec: string): Promise<Check> {
  if (!spec.startsWith("sqlite:"))
    return { name: "store", status: "ok", detail: `${spec} keeps nothing beyond the process` };
  const file = spec.slice("sqlite:".length);
  try {
    if (!(await exists(file))) return await checkNewStore(file);
    const { own } = await import("../store/sqlite/ownership.ts");
    const release = await own(file);
    release();
    return { name: "store", status: "ok", detail: `${file} can be opened` };
  } catch (error) {
    if (error instanceof StoreError && error.code === "in-use") {
      return { name: "store", status: "warning", detail: `${file} is in use by another dragoman` };
    }
    return { name: "store", status: "failed", detail: messageOf(error) };
  }
}

async function checkNewStore(file: string): Promise<Check> {
  let folder = dirname(file);
  while (!(await exists(folder)) && dirname(folder) !== folder) folder = dirname(folder);
  await access(folder, constants.W_OK | constants.X_OK);
  return { name: "store", status: "ok", detail: `${file} will be created` };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

export async function checkAgents(config: DragomanConfig): Promise<readonly Check[]> {
  const { buildAgent } = await import("../server/config/index.ts");
  const checks: Check[] = [];
  for (const [name, agent] of config.agents) {
    try {
      const { profile } = await buildAgent(name, agent, config);
      const missing = agent.source.kind === "process" ? missingProgram(agent.source) : undefined;
      const found: Check = { name: `agent ${name}`, status: "ok", detail: `${profile.name} ${profile.version}` };
      checks.push(missing === undefined ? found : { ...found, status: "failed", detail: missing });
    } catch (error) {
      checks.push({ name: `agent ${name}`, status: "failed", detail: messageOf(error) });
    }
  }
  return checks;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why the program of an agent cannot be started, found without starting it. */
function missingProgram({ command: [program], cwd, env }: ProcessSource): string | undefined {
  const isPath = isAbsolute(program) || program.includes("/");
  const folders = (env.PATH ?? process.env.PATH ?? "").split(delimiter);
  const candidates = isPath ? [resolve(cwd, program)] : folders.map((folder) => join(folder, program));
  if (process.platform === "win32" || candidates.some(isExecutable)) return undefined;
  return isPath ? `${program} is not a program that can be started` : `${program} is not in the PATH`;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
