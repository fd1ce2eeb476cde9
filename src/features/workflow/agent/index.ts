import { type AgentDefinition, defineAgent } from "../../../core/agents/define.ts";
import { createDirectoryAgent } from "../../../core/agents/directory.ts";
import type { Agent, Turn } from "../../../core/engine/agent.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import type { Clock } from "../../../core/model/ports.ts";
import { isWorkflow } from "../definition/compile.ts";
import type { Workflow } from "../definition/plan.ts";
import { cancelChildren } from "./cancel-children.ts";
import { runTurn } from "./run.ts";

export { readProgress, type StepProgress } from "./progress.ts";

export interface WorkflowAgentOptions extends Omit<Partial<AgentDefinition>, "onCrash" | "run" | "streaming"> {
  readonly workflow: Workflow;
  /** Default: the clock of the system. */
  readonly clock?: Clock;
  /** In [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
}

/** Files of any type may be for one of the steps. */
const INPUT_MODES = ["text/plain", "application/json", "*/*"];

/**
 * A workflow as an agent. Its steps are tasks of the agents that they name, which the server provides. After a crash it
 * repeats no step that has ended, and finds the tasks of the others again.
 */
export function createWorkflowAgent(given: WorkflowAgentOptions | Workflow): Agent {
  const options: WorkflowAgentOptions = isWorkflow(given) ? { workflow: given } : given;
  if (!isWorkflow(options?.workflow)) {
    throw new TypeError(
      "createWorkflowAgent: needs a workflow that was built or loaded; workflow(definition) makes an agent of a definition.",
    );
  }
  const { clock = SYSTEM_CLOCK, random = Math.random, workflow, extensions = [], ...definition } = options;
  return createDirectoryAgent((directory) => {
    const run = (turn: Turn) => runTurn(turn, workflow, { directory, clock, random });
    const agent = defineAgent({
      inputModes: INPUT_MODES,
      ...definition,
      name: definition.name ?? workflow.name ?? "Workflow",
      description: definition.description ?? workflow.description ?? describe(workflow),
      extensions: [...extensions, EXTENSION],
      onCrash: "resume",
      run,
    });
    // The engine's own turn tells when the caller has answered, which agents of authors do not see.
    return { ...agent, run, dropped: (task) => cancelChildren(task, workflow, directory) };
  });
}

const EXTENSION = {
  uri: EXTENSIONS.workflow,
  description: "Status messages name the step that they are about, its agent and its task.",
};

function describe({ order }: Workflow): string {
  return `Runs the steps ${order.join(", ")}.`;
}

/** Its timers never keep the process alive. */
const SYSTEM_CLOCK: Clock = {
  now: Date.now,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
