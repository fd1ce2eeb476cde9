import { fieldsOf, type JsonObject, type JsonValue, omitUndefined } from "../../../core/model/json.ts";
import { ConfigError, type Problem } from "../../../core/yaml/problems.ts";
import { compileWorkflow, isWorkflow } from "./compile.ts";
import type { Workflow } from "./plan.ts";

/** A step as in a workflow file. It calls one of `agent`, `url`, `skill` and `workflow`. */
export interface StepDefinition<Names extends string> {
  /** Name of an agent of the configuration. */
  readonly agent?: string;
  /** Address of an agent, or of its card. */
  readonly url?: string;
  /** Id of a skill that exactly one agent of the configuration has. */
  readonly skill?: string;
  /** A workflow that was built or loaded. */
  readonly workflow?: Workflow;
  /** Steps before it that have to end before this one starts. */
  readonly needs?: readonly Names[];
  /** The message that is sent; default: the one that the workflow was called with. */
  readonly input?:
    | string
    | { readonly text?: string; readonly data?: JsonValue; readonly parts?: string | readonly string[] };
  /** Condition; the step is skipped if it is false. */
  readonly when?: string;
  /** Run the step once for each item of a list, with `${item}` and `${index}`. */
  readonly foreach?: string | readonly JsonValue[];
  /** With `foreach`: how many items are worked on at the same time; default: 4. */
  readonly concurrency?: number;
  /** Further attempts after a failure; default: none. */
  readonly retry?: { readonly attempts?: number; readonly delay?: string; readonly maxDelay?: string };
  /** Maximum duration of one attempt. */
  readonly timeout?: string;
  /** Whether a failure of the step ends the workflow; default: `stop`. */
  readonly onFailure?: "stop" | "continue";
  /** JSON Schema of the data that the step returns; the step fails if it returns something else. */
  readonly outputSchema?: JsonObject;
}

export interface WorkflowBuilder<Names extends string> {
  /** Adds a step. */
  step<Name extends string>(name: Name, definition: StepDefinition<Names>): WorkflowBuilder<Names | Name>;
  /** The steps whose artifacts the workflow returns; default: those that no other step needs. */
  output(...names: readonly Names[]): WorkflowBuilder<Names>;
  /** Checks everything as in a file. Throws a ConfigError with all problems. */
  build(): Workflow;
}

/** A workflow as in a file: its steps by name, in any order. */
export interface WorkflowDefinition {
  /** Name of the agent. Default: its name on the server. */
  readonly name?: string;
  readonly description?: string;
  readonly steps: Readonly<Record<string, StepDefinition<string>>>;
  /** The steps whose artifacts the workflow returns; default: those that no other step needs. */
  readonly output?: readonly string[];
}

interface Content {
  readonly description?: string;
  readonly steps: ReadonlyMap<string, object>;
  readonly output?: readonly string[];
}

/** Builds a workflow in code, with the keys and templates of a workflow file. Each call returns a new builder. */
export function workflow(
  name: string,
  { description }: { readonly description?: string } = {},
): WorkflowBuilder<never> {
  const source = sourceOf(name);
  const extend = <Names extends string>(content: Content): WorkflowBuilder<Names> => ({
    step(step, definition) {
      if (content.steps.has(step)) throw new TypeError(`${source} already has a step "${step}"`);
      return extend({ ...content, steps: new Map([...content.steps, [step, definition]]) });
    },
    output: (...names) => extend({ ...content, output: names }),
    build: () => compile({ name, ...content, steps: Object.fromEntries(content.steps) }, source),
  });
  return extend({ ...omitUndefined({ description }), steps: new Map() });
}

const sourceOf = (name: unknown) => (typeof name === "string" ? `workflow "${name}"` : "workflow");

/** A workflow of what describes one. Throws a ConfigError with all problems. */
export function compileDefinition(
  given: WorkflowDefinition | Workflow | Pick<WorkflowBuilder<never>, "build">,
): Workflow {
  if (isWorkflow(given)) return given;
  if (typeof fieldsOf(given).build === "function") return (given as WorkflowBuilder<never>).build();
  return compile(given, sourceOf(fieldsOf(given).name));
}

function compile(values: unknown, source: string): Workflow {
  const problems: Problem[] = [];
  const openFile = () => "must be a workflow; loadWorkflow makes one of a file";
  const built = compileWorkflow(values, { source, path: [], position: undefined, depth: 0, problems, openFile });
  if (built === undefined) throw new ConfigError(problems);
  return built;
}
