/** For programs that use workflows: building and loading them. */

import type { Workflow } from "./plan.ts";

export type { StepDefinition, WorkflowBuilder, WorkflowDefinition } from "./builder.ts";

/** Reads a workflow from a file. Rejects with an error that names all problems, also those of its sub-workflows. */
export async function loadWorkflow(file: string): Promise<Workflow> {
  // Most programs have no use for the parser, which takes a while to load.
  return (await import("./load.ts")).loadWorkflow(file);
}
