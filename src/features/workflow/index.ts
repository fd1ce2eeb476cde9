/** What programs use of workflows. */

export {
  createWorkflowAgent,
  readProgress,
  type StepProgress,
  type WorkflowAgentOptions,
} from "./agent/index.ts";
export { workflow } from "./code-agent.ts";
export {
  loadWorkflow,
  type StepDefinition,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from "./definition/index.ts";
export type { Step, Workflow } from "./definition/plan.ts";
