/** Probes every agent of a configuration and of a registry. */

import type { DragomanConfig } from "../../../server/config/index.ts";
import type { Output } from "../../output.ts";
import { type Check, failed, isDragoman, warning } from "../checks.ts";
import { doctorParts } from "../parts.ts";
import { type ProbeTarget, probeAgent } from "./agent.ts";
import { type AgentReport, notChecked } from "./claims.ts";
import { servedTarget, serverUrlOf } from "./targets.ts";

export interface ProbeAllOptions {
  readonly output: Output;
  /** Default: that of the running server. */
  readonly registry: string | undefined;
  /** Names of agents, or ids in the registry; default: all. */
  readonly only: readonly string[] | undefined;
  readonly send: boolean;
  readonly allowPrivateTargets: boolean;
  /** For one agent. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** One thing to examine for an agent. */
export interface AgentProbe {
  readonly agent: string;
  readonly run: () => Promise<AgentReport>;
}

export const probeOf = (target: ProbeTarget, options: ProbeAllOptions): AgentProbe => ({
  agent: target.agent,
  run: () => probeAgent(target, options),
});

export interface ProbeSurroundings {
  readonly config: DragomanConfig | undefined;
  /** Of the server that runs with the configuration; undefined if none does. */
  readonly serverUrl: string | undefined;
  readonly isWanted: (...names: readonly string[]) => boolean;
}

export interface ListedProbes {
  readonly checks: readonly Check[];
  readonly probes: readonly AgentProbe[];
  /** Of all agents that are listed, wanted or not. */
  readonly names: readonly string[];
}

interface ProbedAgents {
  readonly checks: readonly Check[];
  readonly agents: readonly AgentReport[];
}

/** Agents that are probed at the same time. */
const CONCURRENCY = 8;

export async function probeAll(config: DragomanConfig | undefined, options: ProbeAllOptions): Promise<ProbedAgents> {
  const { only, output, signal } = options;
  const isWanted = (...names: readonly string[]) => only === undefined || names.some((name) => only.includes(name));
  const serverUrl = config === undefined ? undefined : await findServer(config.server);
  const parts = await doctorParts();
  const listed: ListedProbes[] = [];
  for (const { list } of parts) {
    if (list !== undefined) listed.push(await list(options, { config, serverUrl, isWanted }));
  }
  const own = [...(config?.agents ?? [])]
    .filter(([name]) => isWanted(name))
    .flatMap(([name, agent]) => [
      ...parts.flatMap(({ probes: find }) => find?.(name, agent, options) ?? []),
      ...(serverUrl === undefined ? [] : [probeOf(servedTarget(name, serverUrl, output), options)]),
    ]);
  const probes = [...own, ...listed.flatMap((one) => one.probes)];
  let done = 0;
  const reports = await mapConcurrently(probes, CONCURRENCY, async ({ agent, run }) => {
    output.status(`Probing agents: ${done} of ${probes.length}`);
    const report = signal.aborted ? interrupted(agent) : await run();
    done++;
    return report;
  });
  output.status(undefined);
  const asleep = config !== undefined && serverUrl === undefined ? [...config.agents.keys()] : [];
  const idle = asleep.filter((name) => isWanted(name)).map(notServed);
  const unchecked = reports.length > 0 && reports.every(({ status }) => status === "not-checked");
  const names = new Set([...(config?.agents.keys() ?? []), ...listed.flatMap((one) => one.names)]);
  const missing = (only ?? []).filter((name) => !names.has(name));
  return {
    checks: [
      ...listed.flatMap((one) => one.checks),
      ...(unchecked ? [warning("agents", "none of them could be checked")] : []),
      ...missing.map((name) => failed(`agent ${name}`, "is in no configuration or registry")),
    ],
    agents: [...idle, ...reports],
  };
}

async function findServer(server: DragomanConfig["server"]): Promise<string | undefined> {
  if (server.port === 0) return undefined;
  const isRunning = await isDragoman(server.host, server.port, server.tls !== undefined);
  return isRunning ? serverUrlOf(server) : undefined;
}

const notServed = (agent: string): AgentReport => ({
  agent,
  source: "configuration",
  status: "not-checked",
  claims: [{ claim: "card", ...notChecked("the server does not run; dragoman serve starts it") }],
});

const interrupted = (agent: string): AgentReport => ({
  agent,
  source: "configuration",
  status: "not-checked",
  claims: [{ claim: "card", ...notChecked("interrupted before") }],
});

/** The results in the order of the items. */
async function mapConcurrently<T, R>(
  items: readonly T[],
  limit: number,
  map: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await map(items[index] as T);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}
