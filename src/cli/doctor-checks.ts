import { request as ask } from "node:http";
import { request as askSecurely } from "node:https";
import { createServer } from "node:net";
import { findMissingProgram } from "../agents/process/find-program.ts";
import type { DragomanConfig } from "../server/config/index.ts";

export interface Check {
  readonly name: string;
  /** `warning`: works, but not as one may expect. `skipped`: there was nothing to look at. */
  readonly status: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
}

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
    const detail = messageOf(error).replaceAll("\n", "; ");
    return { check: { name: "configuration", status: "failed", detail } };
  }
}

/** gRPC has the port after that of HTTP unless it has one of its own. */
export async function checkPorts({ host, port, grpcPort, tls }: DragomanConfig["server"]): Promise<readonly Check[]> {
  const http = await checkPort(host, port, tls !== undefined);
  const other = grpcPort ?? (port === 0 ? 0 : port + 1);
  if (other === false || other === 0) return [http];
  const problem = await tryListen(host, other);
  const name = "gRPC port";
  if (problem === undefined) return [http, { name, status: "ok", detail: `${host}:${other} is free` }];
  // Of a dragoman that listens there the other port is taken, too.
  const isOwn = http.status === "warning";
  const detail = isOwn ? `${host}:${other} is used by it, too` : inUse(host, other, problem);
  return [http, { name, status: isOwn ? "warning" : "failed", detail }];
}

/** Whether a server could listen there. A dragoman that already does is what one usually wants to find. */
export async function checkPort(host: string, port: number, secure = false): Promise<Check> {
  if (port === 0) return { name: "port", status: "ok", detail: "any free one" };
  const problem = await tryListen(host, port);
  if (problem === undefined) return { name: "port", status: "ok", detail: `${host}:${port} is free` };
  if (problem === "EADDRINUSE" && (await isOurs(host, port, secure))) {
    return { name: "port", status: "warning", detail: `a dragoman already listens on ${host}:${port}` };
  }
  return { name: "port", status: "failed", detail: inUse(host, port, problem) };
}

function inUse(host: string, port: number, problem: string): string {
  const why = problem === "EADDRINUSE" ? "is used by another program" : `cannot be used (${problem})`;
  return `${host}:${port} ${why}`;
}

function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

const ANSWER_MS = 2_000;

/** Whose certificate it shows does not matter: nothing is said to it. */
function isOurs(host: string, port: number, secure: boolean): Promise<boolean> {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const where = { host: reachable, port, path: "/healthz", timeout: ANSWER_MS, rejectUnauthorized: false };
  return new Promise((resolve) => {
    const asking = (secure ? askSecurely : ask)(where, (answer) => {
      resolve(answer.statusCode === 200);
      answer.destroy();
    });
    asking.on("timeout", () => asking.destroy());
    asking.on("error", () => resolve(false)).end();
  });
}

export async function checkAgents(config: DragomanConfig): Promise<readonly Check[]> {
  const { buildAgent } = await import("../server/config/index.ts");
  const checks: Check[] = [];
  for (const [name, agent] of config.agents) {
    try {
      const { profile } = await buildAgent(name, agent, config);
      const missing = agent.source.kind === "process" ? findMissingProgram(agent.source) : undefined;
      const found: Check = { name: `agent ${name}`, status: "ok", detail: `${profile.name} ${profile.version}` };
      checks.push(missing === undefined ? found : { ...found, status: "failed", detail: missing });
    } catch (error) {
      checks.push({ name: `agent ${name}`, status: "failed", detail: messageOf(error) });
    }
  }
  return checks;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
