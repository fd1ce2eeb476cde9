import { basename } from "node:path";
import type { TckOptions } from "../../../features/writers/tck.ts";
import { toSkill } from "../../agents/define.ts";
import { withBindingOf } from "../../agents/directory.ts";
import { loadAgentModule } from "../../agents/load-module.ts";
import type { Agent } from "../../engine/agent.ts";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import type { AgentConfig, AgentOverrides, AgentSource, DragomanConfig } from "./config.ts";
import { createDialInAgent } from "./sections.ts";

export interface BuildOptions {
  /** Bypass the module cache, for reloading after a change. */
  readonly fresh?: boolean;
  /** For reports of agents that callers do not see. */
  readonly log?: Log;
}

/** What an agent has to know of the server that it becomes part of. */
interface BuildSurroundings extends Pick<DragomanConfig, "folder" | "strict"> {
  readonly agents: ReadonlyMap<string, unknown>;
  readonly limits: { readonly part: number; readonly file?: number | undefined };
  readonly server: { readonly watchdogMs: number | false };
  readonly times: { readonly cancelGraceMs: number };
}

/**
 * The agents of a configuration by name, in file order. Throws an AgentModuleError for a module that cannot be used,
 * and a ConfigError for a workflow.
 */
export async function buildAgents(config: DragomanConfig, options: BuildOptions = {}): Promise<Map<string, Agent>> {
  const agents = new Map<string, Agent>();
  for (const [name, agent] of config.agents) agents.set(name, await buildAgent(name, agent, config, options));
  return agents;
}

/**
 * The code for each kind of agent is loaded only if needed, and asked for once: `import` takes longer than making most
 * agents, even when the module is there.
 */
const builtins = once(() => import("../../agents/builtin.ts"));
const isolation = once(() => import("../../agents/isolate/index.ts"));
const processes = once(() => import("../../agents/process/index.ts"));

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** One agent of a configuration. */
export async function buildAgent(
  name: string,
  agent: AgentConfig,
  config: BuildSurroundings,
  options: BuildOptions = {},
): Promise<Agent> {
  const { source, overrides } = agent;
  switch (source.kind) {
    case "builtin": {
      const { BUILTIN_AGENTS } = await builtins();
      const { kind, use, ...how } = source;
      const create: (how: TckOptions) => Agent = BUILTIN_AGENTS[use];
      return withOverrides(create(how), overrides);
    }
    case "module": {
      if (!source.isolate) {
        return withOverrides(await loadAgentModule(source.file, { fresh: options.fresh ?? false }), overrides);
      }
      const { createIsolatedAgent } = await isolation();
      const { cancelGraceMs } = config.times;
      const stallMs = config.server.watchdogMs;
      const isolated = await createIsolatedAgent(
        { file: source.file, id: name, cancelGraceMs, stallMs, log: options.log ?? SILENT_LOG },
        overrides.concurrency,
      );
      return withOverrides(isolated, overrides);
    }
    case "process": {
      const { createProcessAgent } = await processes();
      const { kind, ...how } = source;
      const about = {
        name: overrides.name ?? name,
        // Callers must not see the path of the program.
        description: overrides.description ?? `Runs ${basename(source.command[0])}.`,
        cancelGraceMs: config.times.cancelGraceMs,
        maxOutput: config.limits.part,
        id: name,
        ...(options.log !== undefined && { log: options.log }),
      };
      return withOverrides(createProcessAgent({ ...about, ...how }), overrides);
    }
    case "llm":
    case "writer":
      return withOverrides(await buildLlmAgent(name, source, config, options.log ?? SILENT_LOG), overrides);
    case "link": {
      const { kind, ...how } = source;
      const { timeoutMs, ...rest } = overrides;
      const about = { name, description: "An agent that dials in.", ...rest };
      return createDialInAgent({ ...about, ...(timeoutMs !== undefined && { timeout: timeoutMs }), ...how });
    }
    case "remote": {
      const { buildRemoteAgent } = await import("../../../features/gateway/build-remote.ts");
      return buildRemoteAgent(name, source, overrides, { strict: config.strict, log: options.log ?? SILENT_LOG });
    }
    case "peer": {
      const { createChatPeerAgent } = await import("../../../features/chat/server/chat-peer-agent.ts");
      return createChatPeerAgent(name, source.address, overrides);
    }
    case "found": {
      const { createFindingAgent } = await import("../../../features/gateway/finding-agent.ts");
      const { timeoutMs, ...about } = overrides;
      const timeout = timeoutMs === undefined ? undefined : { timeout: timeoutMs };
      return createFindingAgent({ name, ...about, ...timeout, wanted: source.wanted });
    }
    case "workflow": {
      const { createWorkflowAgent } = await import("../../../features/workflow/agent/index.ts");
      const { loadAgentWorkflow } = await import("../../../features/workflow/config.ts");
      const { agents, folder } = config;
      const around = { agents: [...agents.keys()], single: overrides.concurrency === 1 ? name : undefined };
      const workflow = await loadAgentWorkflow(source, around, { source: `agents.${name}.workflow`, folder });
      return withOverrides(createWorkflowAgent({ workflow, name: workflow.name ?? name }), overrides);
    }
  }
}

async function buildLlmAgent(
  id: string,
  source: Extract<AgentSource, { kind: "llm" | "writer" }>,
  { limits }: Pick<BuildSurroundings, "limits">,
  log: Log,
): Promise<Agent> {
  const { createLlmHost } = await import("../../../features/llm/host.ts");
  const how = {
    id,
    ...source.llm,
    maxResponseBytes: limits.part,
    host: createLlmHost(limits.file ?? limits.part, log),
  };
  if (source.kind === "llm") return (await import("../../../features/llm/index.ts")).createLlmAgent(how);
  const { createModelWriter } = await import("../../../features/llm/writers.ts");
  return createModelWriter({ use: source.use, ...how });
}

function withOverrides(agent: Agent, overrides: AgentOverrides): Agent {
  if (Object.keys(overrides).length === 0) return agent;
  const { name, description, skills, inputModes, concurrency, onCrash, repeatTextInStatus, timeoutMs } = overrides;
  const overridden: Agent = {
    profile: {
      ...agent.profile,
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(skills !== undefined && { skills: skills.map(toSkill) }),
      ...(inputModes !== undefined && { inputModes }),
      ...(repeatTextInStatus !== undefined && { repeatTextInStatus }),
    },
    onCrash: onCrash ?? agent.onCrash,
    concurrency: concurrency ?? agent.concurrency,
    timeoutMs: timeoutMs ?? agent.timeoutMs,
    // Called on the agent: one from a module may be an object whose methods use `this`.
    run: (turn) => agent.run(turn),
    ...(agent.dropped !== undefined && { dropped: async (task) => agent.dropped?.(task) }),
  };
  return withBindingOf(agent, overridden);
}
