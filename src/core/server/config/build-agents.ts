import { toSkill } from "../../agents/define.ts";
import { withBindingOf } from "../../agents/directory.ts";
import type { Agent } from "../../engine/agent.ts";
import type { AgentKind, AgentSurroundings } from "../../extension/contract.ts";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import { agentKinds } from "./agent-kinds.ts";
import type { AgentConfig, AgentOverrides, DragomanConfig } from "./config.ts";

export interface BuildOptions {
  /** Bypass the module cache, for reloading after a change. */
  readonly fresh?: boolean;
  /** For reports of agents that callers do not see. */
  readonly log?: Log;
}

/** What an agent has to know of the server that it becomes part of. */
interface BuildSurroundings extends Pick<DragomanConfig, "folder" | "strict"> {
  readonly agents: ReadonlyMap<string, unknown>;
  readonly limits: AgentSurroundings["limits"];
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

/** One agent of a configuration. */
export async function buildAgent(
  name: string,
  { kind: key, overrides, source }: AgentConfig,
  { agents, folder, limits, server, strict, times }: BuildSurroundings,
  { fresh = false, log = SILENT_LOG }: BuildOptions = {},
): Promise<Agent> {
  const kind = agentKinds().get(key) as AgentKind;
  const built = await kind.build(source, {
    name,
    agents: [...agents.keys()],
    overrides,
    folder,
    strict,
    limits,
    watchdogMs: server.watchdogMs,
    cancelGraceMs: times.cancelGraceMs,
    log,
    fresh,
  });
  return kind.appliesOverrides === true ? built : withOverrides(built, overrides);
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
