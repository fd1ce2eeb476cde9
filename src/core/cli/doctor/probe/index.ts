/** Probes every agent of a configuration and of a registry. */

import { type ModelTarget, probeModel } from "../../../../features/llm/doctor.ts";
import { listRegistry } from "../../../../features/registry/cli/doctor.ts";
import type { DragomanConfig } from "../../../server/config/index.ts";
import { isLoopback } from "../../../wire/loopback.ts";
import type { Output } from "../../output.ts";
import { type Check, failed, isDragoman, messageOf, ok, skipped, warning } from "../checks.ts";
import { type ProbeTarget, probeAgent } from "./agent.ts";
import { type AgentReport, notChecked } from "./claims.ts";
import { configTargets, registryTarget, servedCardUrl, serverUrlOf } from "./targets.ts";

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
  const own = config && configTargets(config, serverUrl, output);
  const listed = await listTargets(options, serverUrl, config, isWanted);
  const agents = [...(own?.agents ?? []).filter(({ agent }) => isWanted(agent)), ...listed.targets];
  const models = (own?.models ?? []).filter(({ agent }) => isWanted(agent));
  const probes = [
    ...models.map((target: ModelTarget) => ({ target, run: () => probeModel(target, options) })),
    ...agents.map((target: ProbeTarget) => ({ target, run: () => probeAgent(target, options) })),
  ];
  let done = 0;
  const reports = await mapConcurrently(probes, CONCURRENCY, async ({ run, target }) => {
    output.status(`Probing agents: ${done} of ${probes.length}`);
    const report = signal.aborted ? interrupted(target) : await run();
    done++;
    return report;
  });
  output.status(undefined);
  const asleep = config !== undefined && serverUrl === undefined ? [...config.agents.keys()] : [];
  const idle = asleep.filter((name) => isWanted(name)).map(notServed);
  const unchecked = reports.length > 0 && reports.every(({ status }) => status === "not-checked");
  const names = new Set([...(config?.agents.keys() ?? []), ...listed.names]);
  const missing = (only ?? []).filter((name) => !names.has(name));
  return {
    checks: [
      ...listed.checks,
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

const interrupted = ({ agent }: { readonly agent: string }): AgentReport => ({
  agent,
  source: "configuration",
  status: "not-checked",
  claims: [{ claim: "card", ...notChecked("interrupted before") }],
});

interface ListedTargets {
  readonly checks: readonly Check[];
  readonly targets: readonly ProbeTarget[];
  /** Of all agents in the registry, wanted or not. */
  readonly names: readonly string[];
}

async function listTargets(
  { allowPrivateTargets, output, registry, signal, timeoutMs }: ProbeAllOptions,
  serverUrl: string | undefined,
  config: DragomanConfig | undefined,
  isWanted: (...names: readonly string[]) => boolean,
): Promise<ListedTargets> {
  const url = registry ?? serverUrl;
  if (url === undefined) return { checks: [], targets: [], names: [] };
  // A server that others can reach is at a loopback address here, too, but not only its owner registers agents there.
  const host = registry === undefined ? (config?.server.host ?? "") : new URL(url).hostname;
  const allowed = { allowPrivate: allowPrivateTargets, allowLoopback: isLoopback(host) };
  try {
    const listed = await listRegistry(url, { output, signal, timeoutMs });
    if (listed === undefined) {
      const found = registry === undefined ? skipped : failed;
      return { checks: [found("registry", `there is none at ${url}`)], targets: [], names: [] };
    }
    const served = new Set(
      serverUrl === undefined ? [] : [...(config?.agents.keys() ?? [])].map((name) => servedCardUrl(serverUrl, name)),
    );
    const others = listed.entries.filter(
      ({ card, isOwn }) => !(url === serverUrl && isOwn) && !(typeof card === "string" && served.has(card)),
    );
    const count = listed.entries.length === 1 ? "1 agent" : `${listed.entries.length} agents`;
    const more = listed.omitted === 0 ? "" : `, ${listed.omitted} more are not probed`;
    return {
      checks: [ok("registry", `${url}, ${count}${more}`)],
      targets: others
        .filter(({ id, name }) => isWanted(id, name))
        .map((entry) => registryTarget(entry, url, allowed, output)),
      names: listed.entries.flatMap(({ id, name }) => [id, name]),
    };
  } catch (error) {
    return { checks: [failed("registry", `${url}: ${messageOf(error)}`)], targets: [], names: [] };
  }
}

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
