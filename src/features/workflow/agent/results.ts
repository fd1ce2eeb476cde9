/** What is kept of a step: for the templates of later steps, for the artifacts of the run, and for a resumed run. */

import type { JsonObject, JsonValue } from "../../../core/model/json.ts";
import { isDataPart, type Part, textOf } from "../../../core/model/message.ts";
import { artifactSize, messageSize } from "../../../core/model/size.ts";
import type { Artifact } from "../../../core/model/task.ts";
import { checkOutput } from "../definition/output-schema.ts";
import type { Scope, StepResult, StepState } from "../definition/plan.ts";

/** How a step ended. Stored as it is. */
export interface StepOutcome {
  readonly state: StepState;
  readonly artifacts: readonly Artifact[];
  /** The message of an agent that made no artifacts. */
  readonly message?: readonly Part[];
  /** Why the step did not complete. */
  readonly error?: string;
  /** Tasks of the agents that were called. */
  readonly tasks: readonly string[];
}

/** Characters of the results of all steps of a run, roughly. */
export const MAX_RUN_SIZE = 64 * 1024 * 1024;

export function sizeOfOutcome({ artifacts, message = [] }: StepOutcome): number {
  return artifacts.reduce((size, artifact) => size + artifactSize(artifact, false), messageSize({ parts: message }));
}

/** What a step returned: its artifacts, or the message of an agent that made none. */
export function partsOf({ artifacts, message = [] }: StepOutcome): readonly Part[] {
  return artifacts.length === 0 ? message : artifacts.flatMap(({ parts }) => parts);
}

export function toResult(outcome: StepOutcome): StepResult {
  const { artifacts, state } = outcome;
  return { ...toContent(partsOf(outcome)), artifacts, state };
}

export function toInput(parts: readonly Part[]): Scope["input"] {
  return { ...toContent(parts), parts };
}

/** The value of the only data part, or a list of those of all. */
function toContent(parts: readonly Part[]): { readonly text: string; readonly data: JsonValue | undefined } {
  const values = parts.filter(isDataPart).map(({ data }) => data);
  return { text: textOf(parts), data: values.length > 1 ? values : values[0] };
}

/** Of a `foreach`, in the order of its items: texts joined, data as a list, all artifacts. */
export function toItemsResult(outcome: StepOutcome, items: readonly StepOutcome[]): StepResult {
  const results = items.map(toResult);
  return {
    text: results
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join("\n"),
    data: results.map(({ data }) => data ?? null),
    artifacts: outcome.artifacts,
    state: outcome.state,
  };
}

/** The parts of several outcomes as one. */
export function joinOutcomes(state: StepState, outcomes: readonly StepOutcome[], error?: string): StepOutcome {
  const message = outcomes.flatMap((outcome) => (outcome.artifacts.length === 0 ? (outcome.message ?? []) : []));
  return {
    state,
    artifacts: outcomes.flatMap(({ artifacts }) => artifacts),
    tasks: outcomes.flatMap(({ tasks }) => tasks),
    ...(message.length === 0 ? undefined : { message }),
    ...(error === undefined ? undefined : { error }),
  };
}

export function failedOutcome(error: string, tasks: readonly string[] = []): StepOutcome {
  return { state: "failed", artifacts: [], error, tasks };
}

/** The outcome, or a failure if the data is not what the step declares. */
export async function checkDeclared(outcome: StepOutcome, schema: JsonObject | undefined): Promise<StepOutcome> {
  const problems = schema === undefined ? [] : await checkOutput(schema, toResult(outcome).data);
  if (problems.length === 0) return outcome;
  return failedOutcome(`The result is not what the step declares: ${problems.join("; ")}`, outcome.tasks);
}
