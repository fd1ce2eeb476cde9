import type { Agent } from "../../core/engine/agent.ts";
import { type CodeAgentOptions, declareAgent } from "../../core/server/config/code-agents.ts";
import { generalKeys } from "../../core/server/config/schema.ts";
import {
  workflow as buildWorkflow,
  compileDefinition,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from "./definition/builder.ts";
import type { Workflow } from "./definition/plan.ts";

/** Builds a workflow in code, with the keys and templates of a workflow file. Each call returns a new builder. */
export function workflow(name: string, options?: { readonly description?: string }): WorkflowBuilder<never>;
/**
 * A workflow as an agent: its definition as in a workflow file, or one that was built or loaded. Its steps call agents of
 * the same server by name. Throws an error that names all problems.
 */
export function workflow(
  definition: WorkflowDefinition | Workflow | WorkflowBuilder<string>,
  options?: CodeAgentOptions,
): Agent;
export function workflow(
  given: string | WorkflowDefinition | Workflow | WorkflowBuilder<string>,
  options: CodeAgentOptions & { readonly description?: string } = {},
): WorkflowBuilder<never> | Agent {
  if (typeof given === "string") return buildWorkflow(given, options);
  const built = compileDefinition(given);
  return declareAgent("workflow", generalKeys, options, (parsed) => ({ ...parsed, workflow: {} }), { built });
}
