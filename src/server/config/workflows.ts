/** Workflows of a configuration, inline or in files of their own. */

import { closestMatch } from "../../model/suggestions.ts";
import { loadWorkflow, type ParseOptions, parseWorkflow } from "../../workflow/load.ts";
import type { Step, Workflow } from "../../workflow/plan.ts";
import { ConfigError, type Path, type Problem } from "../../yaml/problems.ts";
import type { AgentSource } from "./config.ts";

/** Names and templates of workflows are written like variables, which are not expanded in them. */
export function isInsideWorkflow([section, _name, key, ...inside]: Path): boolean {
  return section === "agents" && key === "workflow" && inside.length > 0;
}

/** Reads a workflow of an agent and checks that its agents are in the configuration. Throws a ConfigError. */
export async function loadAgentWorkflow(
  { file, inline }: Omit<Extract<AgentSource, { kind: "workflow" }>, "kind">,
  agents: Iterable<string>,
  options: ParseOptions,
): Promise<Workflow> {
  const workflow = inline === undefined ? await loadWorkflow(file ?? "") : parseWorkflow(inline, options);
  const problems = findUnknownAgents(workflow, [...agents], options.source);
  if (problems.length > 0) throw new ConfigError(problems);
  return workflow;
}

/** What is wrong with a workflow that is written into the configuration. */
export function inlineProblems(inline: object, agents: readonly string[], options: ParseOptions): readonly Problem[] {
  try {
    return findUnknownAgents(parseWorkflow(inline, options), agents, options.source);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function findUnknownAgents(workflow: Workflow, agents: readonly string[], source: string): Problem[] {
  return [...workflow.steps.values()].flatMap((step) => {
    const { target } = step;
    if ("workflow" in target) return findUnknownAgents(target.workflow, agents, source);
    if (!("agent" in target) || agents.includes(target.agent)) return [];
    return [unknownAgent(step, target.agent, agents, source)];
  });
}

function unknownAgent({ name, position }: Step, agent: string, agents: readonly string[], source: string): Problem {
  const meant = closestMatch(agent, agents);
  const hint = meant === undefined ? `the agents are ${agents.join(", ")}` : `did you mean "${meant}"?`;
  return {
    source: position?.file ?? source,
    line: position?.line,
    column: position?.column,
    path: `steps.${name}.agent`,
    message: `there is no agent "${agent}"; ${hint}`,
  };
}
