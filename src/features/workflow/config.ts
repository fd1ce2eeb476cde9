/** Workflows of a configuration, inline or in files of their own. */

import { closestMatch } from "../../core/model/suggestions.ts";
import type { AgentSource } from "../../core/server/config/config.ts";
import { ConfigError, type Path, type Problem } from "../../core/yaml/problems.ts";
import { loadWorkflow, type ParseOptions, parseWorkflow } from "./definition/load.ts";
import type { Workflow } from "./definition/plan.ts";

/** Names and templates of workflows are written like variables, which are not expanded in them. */
export function isInsideWorkflow([section, _name, key, ...inside]: Path): boolean {
  return section === "agents" && key === "workflow" && inside.length > 0;
}

interface Surroundings {
  /** The names of all agents. */
  readonly agents: readonly string[];
  /** The workflow's own, if it runs only once at a time. */
  readonly single: string | undefined;
}

/** Reads a workflow of an agent and checks that its agents are in the configuration. Throws a ConfigError. */
export async function loadAgentWorkflow(
  { built, file, inline }: Omit<Extract<AgentSource, { kind: "workflow" }>, "kind">,
  around: Surroundings,
  options: ParseOptions,
): Promise<Workflow> {
  const read = async () => (inline === undefined ? loadWorkflow(file ?? "") : parseWorkflow(inline, options));
  const workflow = built ?? (await read());
  const problems = checkAgents(workflow, around, options.source);
  if (problems.length > 0) throw new ConfigError(problems);
  return workflow;
}

/** What is wrong with a workflow that is written into the configuration. */
export function inlineProblems(inline: object, around: Surroundings, options: ParseOptions): readonly Problem[] {
  try {
    return checkAgents(parseWorkflow(inline, options), around, options.source);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function checkAgents(workflow: Workflow, around: Surroundings, source: string): Problem[] {
  return [...workflow.steps.values()].flatMap((step) => {
    const { name, position, target } = step;
    if ("workflow" in target) return checkAgents(target.workflow, around, source);
    const message = "agent" in target ? checkAgent(target.agent, around) : undefined;
    if (message === undefined) return [];
    const { file = source, line, column } = position ?? {};
    return [{ source: file, line, column, path: `steps.${name}.agent`, message }];
  });
}

function checkAgent(agent: string, { agents, single }: Surroundings): string | undefined {
  if (agent === single) return "the workflow calls itself, and with concurrency: 1 would wait for itself for ever";
  if (agents.includes(agent)) return undefined;
  const meant = closestMatch(agent, agents);
  const hint = meant === undefined ? `the agents are ${agents.join(", ")}` : `did you mean "${meant}"?`;
  return `there is no agent "${agent}"; ${hint}`;
}
