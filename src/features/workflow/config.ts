/** Workflows of a configuration, inline or in files of their own. */

import { resolve } from "node:path";
import { z } from "zod";
import type { AgentKind } from "../../core/extension/contract.ts";
import { closestMatch } from "../../core/model/suggestions.ts";
import { ConfigError, type Path, type Problem } from "../../core/yaml/problems.ts";
import { optional, text } from "../../core/yaml/value-types.ts";
import { loadWorkflow, type ParseOptions, parseWorkflow } from "./definition/load.ts";
import type { Workflow } from "./definition/plan.ts";

/** One of the three. */
interface WorkflowSource {
  readonly file?: string;
  readonly inline?: object;
  readonly built?: Workflow;
}

export const workflowKind: AgentKind<WorkflowSource> = {
  keys: {
    workflow: optional(
      z.union([text, z.record(z.string(), z.unknown())], { error: "must be a file or the content of one" }),
      "File with a workflow, relative to this file, or its content. `${…}` in it is not expanded.",
    ),
  },
  // Names and templates of workflows are written like variables.
  verbatim: true,
  problems({ concurrency, workflow }, { agents, folder, name, position, source }) {
    if (typeof workflow !== "object" || workflow === null) return [];
    const path = ["agents", name, "workflow"];
    const around = { agents, single: concurrency === 1 ? name : undefined };
    return inlineProblems(workflow, around, {
      source,
      folder,
      path,
      position: (inside, how) => position([...path, ...inside] as Path, how),
    });
  },
  toSource: ({ workflow }, folder) =>
    typeof workflow === "string" ? { file: resolve(folder, workflow) } : { inline: workflow as object },
  async build(source, { agents, folder, name, overrides }) {
    const { createWorkflowAgent } = await import("./agent/index.ts");
    const around = { agents, single: overrides.concurrency === 1 ? name : undefined };
    const workflow = await loadAgentWorkflow(source, around, { source: `agents.${name}.workflow`, folder });
    return createWorkflowAgent({ workflow, name: workflow.name ?? name });
  },
  summary: ({ file }) => (file === undefined ? "workflow" : `workflow: ${file}`),
  *shown(path, { file }) {
    yield [`${path}.workflow`, file ?? "inline"];
  },
  files: ({ file }) => (file === undefined ? [] : [file]),
};

interface Surroundings {
  /** The names of all agents. */
  readonly agents: readonly string[];
  /** The workflow's own, if it runs only once at a time. */
  readonly single: string | undefined;
}

/** Reads a workflow of an agent and checks that its agents are in the configuration. Throws a ConfigError. */
async function loadAgentWorkflow(
  { built, file, inline }: WorkflowSource,
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
function inlineProblems(inline: object, around: Surroundings, options: ParseOptions): readonly Problem[] {
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
