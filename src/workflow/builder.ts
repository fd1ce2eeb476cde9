import { omitUndefined } from "../model/json.ts";
import { ConfigError, type Problem } from "../yaml/problems.ts";
import { compileWorkflow } from "./compile.ts";
import type { Workflow } from "./plan.ts";
import type { StepInput } from "./schema.ts";

/** A step as in a workflow file; `needs` can name the steps before it, and `workflow` is one that was built or loaded. */
export type StepDefinition<Names extends string> = Omit<StepInput, "needs" | "workflow"> & {
  readonly needs?: readonly Names[];
  readonly workflow?: Workflow;
};

export interface WorkflowBuilder<Names extends string> {
  /** Adds a step. */
  step<Name extends string>(name: Name, definition: StepDefinition<Names>): WorkflowBuilder<Names | Name>;
  /** The steps whose artifacts the workflow returns; default: those that no other step needs. */
  output(...names: readonly Names[]): WorkflowBuilder<Names>;
  /** Checks everything as in a file. Throws a ConfigError with all problems. */
  build(): Workflow;
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
  const source = `workflow "${name}"`;
  const extend = <Names extends string>(content: Content): WorkflowBuilder<Names> => ({
    step(step, definition) {
      if (content.steps.has(step)) throw new TypeError(`${source} already has a step "${step}"`);
      return extend({ ...content, steps: new Map([...content.steps, [step, definition]]) });
    },
    output: (...names) => extend({ ...content, output: names }),
    build: () => {
      const steps = Object.fromEntries(content.steps);
      const problems: Problem[] = [];
      const openFile = () => "must be a workflow; loadWorkflow makes one of a file";
      const reading = { source, path: [], position: undefined, depth: 0, problems, openFile };
      const built = compileWorkflow({ name, ...content, steps }, reading);
      if (built === undefined) throw new ConfigError(problems);
      return built;
    },
  });
  return extend({ ...omitUndefined({ description }), steps: new Map() });
}
