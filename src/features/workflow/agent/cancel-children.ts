import { cancelAtPeer, findChildId } from "../../../core/agents/child-task.ts";
import type { AgentDirectory, AgentTarget, ChosenAgent } from "../../../core/agents/directory.ts";
import type { DroppedTask } from "../../../core/engine/agent.ts";
import type { Step, Workflow } from "../definition/plan.ts";
import { childIdOf, type Stored } from "./context.ts";
import { childPrefix, chosenKey, DIALECT } from "./open-child.ts";
import { ASKED, type AskedQuestion } from "./run.ts";
import { attemptKey, doneKey, itemPath, itemsKey, subBase } from "./steps.ts";

interface RunningStep {
  readonly path: string;
  readonly attempt: number;
  readonly target: AgentTarget;
}

/** Cancels what the agents of a run may still be doing for it when no process is at work on the run itself. */
export async function cancelChildren(task: DroppedTask, workflow: Workflow, directory: AgentDirectory): Promise<void> {
  // A later run than the first that was cut off by a crash is not known here: its tasks end by themselves.
  const run = (await task.memory.get<Stored<AskedQuestion>>(ASKED))?.run ?? "";
  const steps: RunningStep[] = [];
  for await (const step of findRunning(workflow, "", (key) => task.memory.get(run + key))) steps.push(step);
  const cancelled = await Promise.allSettled(steps.map((step) => cancelStep(step, task, run, directory)));
  const refused = cancelled.find(({ status }) => status === "rejected");
  if (refused?.status === "rejected") throw refused.reason;
}

type Read = <T extends string | number>(key: string) => Promise<T | undefined>;

async function* findRunning(
  workflow: Workflow,
  base: string,
  read: Read,
): AsyncGenerator<RunningStep, void, undefined> {
  for (const step of workflow.steps.values()) {
    const path = base + step.name;
    const items = step.foreach === undefined ? undefined : ((await read<number>(itemsKey(path))) ?? 0);
    if (items === undefined) yield* findRunningOnce(step, path, read);
    else for (let index = 0; index < items; index++) yield* findRunningOnce(step, itemPath(path, index), read);
  }
}

async function* findRunningOnce(step: Step, path: string, read: Read): AsyncGenerator<RunningStep, void, undefined> {
  if ((await read(doneKey(path))) !== undefined) return;
  const attempt = (await read<number>(attemptKey(path))) ?? 1;
  const { target } = step;
  if ("workflow" in target) yield* findRunning(target.workflow, subBase(path, attempt), read);
  else yield { path, attempt, target };
}

/** Only agents of this process give a task the id that was chosen for it, whether or not it was begun. */
async function cancelStep(
  { attempt, path, target }: RunningStep,
  task: DroppedTask,
  run: string,
  directory: AgentDirectory,
): Promise<void> {
  const known = await findChildId(task.memory, run + childPrefix(path, attempt));
  const chosen = await task.memory.get<ChosenAgent>(run + chosenKey(path, attempt));
  if (known === undefined && ("url" in target || chosen !== undefined)) return;
  const agent = await directory.resolve(chosen === undefined ? target : { chosen }, task);
  if (known === undefined && !agent.isLocal) return;
  const id = known ?? childIdOf(task.id, run, path, attempt);
  const cancelling = cancelAtPeer(agent, id, task.caller, DIALECT);
  if (known !== undefined) await cancelling;
  else await cancelling.catch(() => {});
}
