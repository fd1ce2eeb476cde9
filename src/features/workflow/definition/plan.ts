/** What a workflow is after its file was read and checked: names resolved, templates parsed, times in milliseconds. */

import type { JsonObject, JsonPrimitive, JsonValue } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import type { Artifact } from "../../../core/model/task.ts";

export interface Workflow {
  readonly name?: string;
  readonly description?: string;
  readonly steps: ReadonlyMap<string, Step>;
  /** Steps whose artifacts are those of the workflow. */
  readonly output: readonly string[];
  /** All steps, each after those it needs. */
  readonly order: readonly string[];
}

/** What a step calls. `agent` is a name in the configuration, `skill` the id of a skill of one of its agents. */
export type StepTarget =
  | { readonly agent: string }
  | { readonly url: string }
  | { readonly skill: string }
  | { readonly workflow: Workflow };

export interface Step {
  readonly name: string;
  readonly target: StepTarget;
  /** Steps that have to end before this one starts. */
  readonly needs: readonly string[];
  /** Absent: the message of the caller. */
  readonly input?: InputTemplate;
  /** Absent: always. */
  readonly when?: Condition;
  /** Run once for each item of a list. */
  readonly foreach?: Template;
  /** Runs of a `foreach` at the same time. */
  readonly concurrency: number;
  /** `attempts` counts the first one. */
  readonly retry: { readonly attempts: number; readonly baseMs: number; readonly capMs: number };
  /** Of one attempt. */
  readonly timeoutMs?: number;
  readonly onFailure: "stop" | "continue";
  /** JSON Schema of the data that the step returns. */
  readonly outputSchema?: JsonObject;
  /** Absent in a workflow that does not come from a file. */
  readonly position?: StepPosition;
}

export interface StepPosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** How a step can end, as conditions spell it. */
export const STEP_STATES = ["completed", "failed", "canceled", "rejected", "skipped"] as const;
export type StepState = (typeof STEP_STATES)[number];

/** The values that templates and conditions can refer to. */
export interface Scope {
  readonly input: { readonly text: string; readonly data: JsonValue | undefined; readonly parts: readonly Part[] };
  readonly steps: Readonly<Record<string, StepResult>>;
  /** In a `foreach`. */
  readonly item?: JsonValue;
  readonly index?: number;
}

export interface StepResult {
  readonly text: string;
  readonly data: JsonValue | undefined;
  readonly artifacts: readonly Artifact[];
  readonly state: string;
}

/** `steps.outline.data.sections.0`, as `["steps", "outline", "data", "sections", "0"]`. */
export interface Reference {
  readonly kind: "reference";
  readonly path: readonly string[];
}

export type Operator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||";

/** The condition of `when`. */
export type Condition =
  | Reference
  | { readonly kind: "literal"; readonly value: JsonPrimitive }
  | { readonly kind: "not"; readonly operand: Condition }
  | { readonly kind: "binary"; readonly operator: Operator; readonly left: Condition; readonly right: Condition };

/** A JSON value whose strings may contain `${…}`; a string that is one `${…}` and nothing else keeps the type of its value. */
export type Template =
  | Reference
  | { readonly kind: "literal"; readonly value: JsonPrimitive }
  | { readonly kind: "text"; readonly pieces: readonly (string | Reference)[] }
  | { readonly kind: "list"; readonly items: readonly Template[] }
  | { readonly kind: "map"; readonly members: ReadonlyMap<string, Template> };

/** The message that a step sends: from one value, or from its kinds of parts. */
export type InputTemplate =
  | { readonly value: Template }
  | { readonly text?: Template; readonly data?: Template; readonly parts?: readonly Reference[] };
