import { existsSync } from "node:fs";
import { findConfig } from "../../../core/cli/commands/serve.ts";
import { CommandError } from "../../../core/cli/errors.ts";
import { type Output, printResult } from "../../../core/cli/output.ts";
import { type PartFlag, readParts, readStandardInput } from "../../../core/cli/session/message-parts.ts";
import { redactUrl } from "../../../core/client/errors.ts";
import { agentKinds } from "../../../core/server/config/agent-kinds.ts";
import type { AgentConfig } from "../../../core/server/config/config.ts";
import type { DragomanConfig } from "../../../core/server/config/index.ts";
import { ConfigError } from "../../../core/yaml/problems.ts";
import { type GraphFormat, toGraph } from "../definition/graph.ts";
import { loadWorkflow } from "../definition/load.ts";
import type { Workflow } from "../definition/plan.ts";
import { callsOf, checkTargets, findAgent, type KnownAgent, missingSkills } from "../definition/targets.ts";
import { executeWorkflow } from "./execute-workflow.ts";
import { planSteps, renderPlan } from "./render.ts";
import { lookUpSkills, readRegistryFlag, type SkillsElsewhere } from "./skills-elsewhere.ts";

export interface RunFlags {
  readonly parts?: readonly PartFlag[];
  readonly config?: string;
  readonly dryRun?: boolean;
  readonly graph?: GraphFormat;
  readonly output?: "text" | "json";
  readonly registry?: string;
}

export async function runWorkflow(
  output: Output,
  file: string,
  message: readonly string[],
  flags: RunFlags,
): Promise<void> {
  const workflow = await loadWorkflow(file).catch(failWithProblems);
  if (flags.graph !== undefined) {
    const graph = toGraph(workflow, flags.graph);
    printResult(output, flags.output, { format: flags.graph, graph }, () => graph);
    return;
  }
  const config = await findAgents(flags);
  const agents = await knownAgents(workflow, config);
  const skills = missingSkills(workflow, agents);
  const elsewhere = await lookUpSkills(skills, readRegistryFlag(flags.registry));
  const problems = checkTargets(workflow, agents, file, new Set(elsewhere.agents.keys()));
  if (problems.length > 0) failWithProblems(new ConfigError(problems));
  if (flags.dryRun === true) {
    showPlan(output, workflow, { agents, config, elsewhere }, flags);
    return;
  }
  const input = { isTerminal: process.stdin.isTTY === true, read: readStandardInput };
  const parts = await readParts(message, flags.parts ?? [], input, `dragoman run ${file} --text "hello"`);
  await executeWorkflow(output, { workflow, parts, config, format: flags.output, find: elsewhere.find });
}

function failWithProblems(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  throw new CommandError("DRAGOMAN_ERR_WORKFLOW", error.message, null, { cause: error });
}

/** The configuration that has the agents; undefined if there is none, which is fine for agents that are URLs. */
async function findAgents({ config: given, dryRun }: RunFlags): Promise<DragomanConfig | undefined> {
  const file = given ?? findConfig();
  if (given === undefined && !existsSync(file)) return undefined;
  const { environmentFor, loadConfig } = await import("../../../core/server/config/index.ts");
  const environment = await environmentFor(file);
  // Modules and programs also see the variables of the `.env` file.
  if (dryRun !== true) Object.assign(process.env, environment);
  return loadConfig(file, environment);
}

/** Only agents know their skills, so they are built where a step asks for one. */
async function knownAgents(workflow: Workflow, config: DragomanConfig | undefined): Promise<readonly KnownAgent[]> {
  if (config === undefined) return [];
  const asksForSkills = [...callsOf(workflow)].some(({ target }) => "skill" in target);
  if (!asksForSkills) return [...config.agents.keys()].map((name) => ({ name, skills: [] }));
  const { buildAgents } = await import("../../../core/server/config/index.ts");
  const agents = await buildAgents(config);
  return [...agents].map(([name, { profile }]) => ({ name, skills: profile.skills.map(({ id }) => id) }));
}

/** What a workflow can call. */
interface Callable {
  readonly agents: readonly KnownAgent[];
  readonly config: DragomanConfig | undefined;
  readonly elsewhere: SkillsElsewhere;
}

function showPlan(output: Output, workflow: Workflow, { agents, config, elsewhere }: Callable, flags: RunFlags): void {
  const steps = planSteps(workflow, (target) => {
    if ("url" in target) return target.url;
    const best = "skill" in target ? elsewhere.agents.get(target.skill) : undefined;
    if (best !== undefined) return `${best}, from the registry at ${redactUrl(elsewhere.registry)}`;
    const found = findAgent(target, agents);
    if ("problem" in found) return found.problem;
    const source = summarize(config?.agents.get(found.agent));
    return "skill" in target ? `agent ${found.agent}, ${source}` : source;
  });
  const { description = null, name = null, output: returned } = workflow;
  const plan = { name, description, steps, output: returned };
  printResult(output, flags.output, plan, () => renderPlan(workflow, steps));
}

const summarize = (agent: AgentConfig | undefined): string =>
  agent === undefined ? "" : (agentKinds().get(agent.kind)?.summary(agent.source) ?? "");
