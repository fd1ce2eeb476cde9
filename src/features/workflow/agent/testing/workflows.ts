/** Workflows and the agents of their steps on one engine, with time in the hands of the test. */

import {
  type AgentDirectory,
  type AgentTarget,
  bindDirectory,
  type CallableAgent,
  type ResolveOptions,
} from "../../../../core/agents/directory.ts";
import type { Agent } from "../../../../core/engine/agent.ts";
import { Harness, type HarnessOptions } from "../../../../core/engine/testing/harness.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { LogEntry } from "../../../../core/model/event.ts";
import { textOf } from "../../../../core/model/message.ts";
import type { OperationKind } from "../../../../core/model/operation.ts";
import type { Artifact, Task } from "../../../../core/model/task.ts";
import { parseCondition } from "../../definition/expression.ts";
import type { Step, StepTarget, Workflow } from "../../definition/plan.ts";
import { parseTemplate } from "../../definition/template.ts";
import { createWorkflowAgent, readProgress, type StepProgress } from "../index.ts";

interface StepDraft extends Partial<Omit<Step, "foreach" | "input" | "name" | "target" | "when">> {
  readonly agent?: string;
  readonly target?: StepTarget;
  readonly input?: string;
  readonly when?: string;
  readonly foreach?: string;
}

/** Steps in the order they are written in, which must be one in which they can run. */
export function workflowOf(drafts: Readonly<Record<string, StepDraft>>, output?: readonly string[]): Workflow {
  const steps = new Map(Object.entries(drafts).map(([name, draft]) => [name, stepOf(name, draft)]));
  const order = [...steps.keys()];
  return { steps, order, output: output ?? order.slice(-1) };
}

function stepOf(name: string, draft: StepDraft): Step {
  const { agent = name, foreach, input, target, when, ...rest } = draft;
  return {
    name,
    target: target ?? { agent },
    needs: [],
    concurrency: 4,
    retry: { attempts: 1, baseMs: 100, capMs: 1_000 },
    onFailure: "stop",
    ...(input !== undefined && { input: { value: parseTemplate(input) } }),
    ...(when !== undefined && { when: parseCondition(when) }),
    ...(foreach !== undefined && { foreach: parseTemplate(foreach) }),
    ...rest,
  };
}

interface World extends Omit<HarnessOptions, "agent" | "agents"> {
  readonly workflow: Workflow;
  readonly agents: Readonly<Record<string, Agent>>;
  /** Replaces what the directory returns. */
  readonly resolve?: (agent: CallableAgent) => CallableAgent;
  /** Runs of the workflow at the same time. */
  readonly concurrency?: number;
  /** The agent for a target that is not a name; `local` is one of `agents`. */
  readonly find?: (
    target: AgentTarget,
    options: ResolveOptions | undefined,
    local: (name: string) => CallableAgent,
  ) => CallableAgent;
}

/** The workflow is served as `agent`. */
export async function startWorld({
  workflow,
  agents,
  resolve = (agent) => agent,
  concurrency = Number.POSITIVE_INFINITY,
  find,
  ...options
}: World): Promise<Harness> {
  let harness: Harness | undefined;
  const clock = {
    now: () => harness?.clock.now() ?? 0,
    after: (milliseconds: number, run: () => void) => harness?.clock.after(milliseconds, run) ?? (() => {}),
  };
  const tools = { clock, random: () => 0 };
  const agent = createWorkflowAgent({ name: "Flow", description: "Runs steps.", workflow, concurrency, ...tools });
  const all: Readonly<Record<string, Agent>> = { agent, ...agents };
  const directory: AgentDirectory = {
    async resolve(target, _turn, how) {
      const local = (name: string) => localAgent(name, () => harness as Harness);
      if (find !== undefined && !("agent" in target)) return find(target, how, local);
      const name = "agent" in target ? target.agent : "";
      if (!Object.hasOwn(all, name)) throw new ProtocolError("INVALID_PARAMS", `There is no agent "${name}".`);
      return resolve(local(name));
    },
  };
  for (const one of Object.values(all)) bindDirectory(one, directory);
  return Harness.start({ ...options, agents: all }, (created) => {
    harness = created;
  });
}

const ALL = Object.fromEntries(
  ["send", "stream", "get", "list", "cancel", "subscribe"].map((kind) => [kind, true]),
) as Record<OperationKind, boolean>;

function localAgent(name: string, harness: () => Harness): CallableAgent {
  return {
    name,
    dialect: "local",
    isLocal: true,
    can: { operations: ALL },
    recognizesRepeats: true,
    dispatch: (operation, call) => harness().engine.agent(name).dispatch(operation, call),
  };
}

/** The steps that the log reports, as `step state`. */
export function progressOf(entries: readonly LogEntry[]): string[] {
  return stepsIn(entries).map(({ state, step }) => `${step} ${state}`);
}

export function stepsIn(entries: readonly LogEntry[]): StepProgress[] {
  return entries.flatMap(({ event }) => {
    const progress = "statusUpdate" in event ? readProgress(event.statusUpdate.status.message) : undefined;
    return progress === undefined ? [] : [progress];
  });
}

export function textsOf({ artifacts = [] }: Task): Record<string, string> {
  return Object.fromEntries(artifacts.map((artifact: Artifact) => [artifact.name ?? "?", textOf(artifact.parts)]));
}

export function statusTextOf({ status }: Task): string {
  return status.message === undefined ? "" : textOf(status.message.parts);
}
