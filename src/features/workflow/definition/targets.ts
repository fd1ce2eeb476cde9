/** Which agents the steps of a workflow call. */

import { closestMatch } from "../../../core/model/suggestions.ts";
import type { Problem } from "../../../core/yaml/problems.ts";
import type { Step, StepTarget, Workflow } from "./plan.ts";

/** An agent of a configuration. */
export interface KnownAgent {
  readonly name: string;
  /** Ids. */
  readonly skills: readonly string[];
}

/** The agent that a name or skill stands for, or why there is none. */
export function findAgent(
  target: Extract<StepTarget, { agent: string } | { skill: string }>,
  agents: readonly KnownAgent[],
): { readonly agent: string } | { readonly problem: string } {
  if ("agent" in target) {
    const { agent } = target;
    const names = agents.map(({ name }) => name);
    return names.includes(agent) ? { agent } : { problem: missing(`there is no agent "${agent}"`, agent, names) };
  }
  const { skill } = target;
  const found = agents.filter(({ skills }) => skills.includes(skill)).map(({ name }) => name);
  const [first] = found;
  if (first === undefined) {
    const skills = new Set(agents.flatMap((agent) => agent.skills));
    return { problem: missing(`no agent has the skill "${skill}"`, skill, [...skills]) };
  }
  if (found.length === 1) return { agent: first };
  return { problem: `more than one agent has the skill "${skill}": ${found.join(", ")}; name one of them` };
}

function missing(message: string, given: string, known: readonly string[]): string {
  const meant = closestMatch(given, known);
  if (meant !== undefined) return `${message}; did you mean "${meant}"?`;
  return known.length === 0 ? message : `${message}; use one of ${known.join(", ")}`;
}

/** Every step that calls an agent, those of sub-workflows included; `path` is `steps.draft.workflow.steps.outline`. */
export function* callsOf(
  workflow: Workflow,
  path = "steps",
): Generator<{
  readonly step: Step;
  readonly path: string;
  readonly target: Exclude<StepTarget, { workflow: Workflow }>;
}> {
  for (const step of workflow.steps.values()) {
    const { target } = step;
    const own = `${path}.${step.name}`;
    if ("workflow" in target) yield* callsOf(target.workflow, `${own}.workflow.steps`);
    else yield { step, path: own, target };
  }
}

/** Skills that steps ask for and no agent of the configuration has. */
export function missingSkills(workflow: Workflow, agents: readonly KnownAgent[]): readonly string[] {
  const known = new Set(agents.flatMap(({ skills }) => skills));
  const asked = [...callsOf(workflow)].flatMap(({ target }) => ("skill" in target ? [target.skill] : []));
  return [...new Set(asked)].filter((skill) => !known.has(skill));
}

/**
 * Steps whose agents the configuration does not have. `source` names a workflow that does not come from a file;
 * `elsewhere` are skills that agents of other servers have.
 */
export function checkTargets(
  workflow: Workflow,
  agents: readonly KnownAgent[],
  source: string,
  elsewhere: ReadonlySet<string> = new Set(),
): readonly Problem[] {
  return [...callsOf(workflow)].flatMap(({ step, path, target }) => {
    const found = "url" in target ? undefined : findAgent(target, agents);
    if (found === undefined || !("problem" in found)) return [];
    if ("skill" in target && elsewhere.has(target.skill)) return [];
    const { file = source, line, column } = step.position ?? {};
    // Paths in a file begin with the file, also in that of a sub-workflow.
    const key = `${file === source ? path : `steps.${step.name}`}.${Object.keys(target).join()}`;
    return [{ source: file, line, column, path: key, message: found.problem }];
  });
}
