import { parseWorkflow } from "../../src/features/workflow/definition/load.ts";
import type { Workflow } from "../../src/features/workflow/definition/plan.ts";

const LAYERS = 5;
const BRANCHES = 4;
/** The layer whose steps run in the process that is killed. */
const LOCAL_LAYER = 2;

const nameOf = (layer: number, branch: number): string => `s${layer}${branch % BRANCHES}`;
const needsOf = (layer: number, branch: number): string[] =>
  layer === 0 ? [] : [nameOf(layer - 1, branch), nameOf(layer - 1, branch + 1)];

function* places(): Generator<readonly [layer: number, branch: number], void, undefined> {
  for (let layer = 0; layer < LAYERS; layer++) for (let branch = 0; branch < BRANCHES; branch++) yield [layer, branch];
}

/** Four branches that need each other; each step gets its name and what those it needs returned. */
export function twentySteps(workersUrl: string): Workflow {
  const steps = [...places()].map(([layer, branch]) => {
    const needs = needsOf(layer, branch);
    const text = ["${input.text}", nameOf(layer, branch), ...needs.map((name) => `\${steps.${name}.text}`)].join(" ");
    const target = layer === LOCAL_LAYER ? { agent: "here" } : { url: workersUrl };
    return [nameOf(layer, branch), { ...target, needs, input: { text } }];
  });
  return parseWorkflow({ name: "twenty", steps: Object.fromEntries(steps) }, { source: "twenty steps" });
}

/** What the output steps return for an input. */
export function expectedTexts(input: string): Record<string, string> {
  const texts = new Map<string, string>();
  for (const [layer, branch] of places()) {
    const name = nameOf(layer, branch);
    texts.set(name, `[${[input, name, ...needsOf(layer, branch).map((need) => texts.get(need))].join(" ")}]`);
  }
  return Object.fromEntries([...texts].slice(-BRANCHES));
}

/** Names of the steps that run elsewhere. */
export const remoteSteps: readonly string[] = [...places()].flatMap(([layer, branch]) =>
  layer === LOCAL_LAYER ? [] : [nameOf(layer, branch)],
);
