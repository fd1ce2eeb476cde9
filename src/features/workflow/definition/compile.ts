import { fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import type { Position } from "../../../core/yaml/document.ts";
import { formatPath, type Path, type Problem, toFindings } from "../../../core/yaml/problems.ts";
import { compileStep, type StepFinding } from "./compile-step.ts";
import { orderSteps } from "./order.ts";
import type { Step, Workflow } from "./plan.ts";
import { unknownStep } from "./references.ts";
import { STEP_NAME_ERROR, workflowSchema } from "./schema.ts";

/** Of a workflow with all of its sub-workflows. */
const MAX_STEPS = 1_000;
const MAX_NESTING = 16;

/** One file, or what takes the place of one, while it is read. */
export interface Reading {
  /** Its name in messages. */
  readonly source: string;
  /** The place of the workflow in it. */
  readonly path: Path;
  /** Where values are in it; undefined: they do not come from a file. */
  readonly position: ((path: Path, options: PositionOptions) => Position) | undefined;
  /** Sub-workflows around it. */
  readonly depth: number;
  /** Problems of all files together. */
  readonly problems: Problem[];
  /** Reads the file of a sub-workflow; a text says why it cannot be read. Undefined: it has problems, which were added. */
  readonly openFile: (file: string, depth: number) => Workflow | string | undefined;
}

export interface PositionOptions {
  readonly atKey: boolean;
  readonly fragment: string;
}

/** A workflow from the values of its keys; undefined if there are problems, which are added to those of the reading. */
export function compileWorkflow(values: unknown, reading: Reading): Workflow | undefined {
  const { problems } = reading;
  const known = problems.length;
  const report = ({ path, message, atKey = false, fragment = "" }: StepFinding): void => {
    const { line, column } = reading.position?.(path, { atKey, fragment }) ?? {};
    problems.push({ source: reading.source, line, column, path: formatPath([...reading.path, ...path]), message });
  };
  const { error, data } = workflowSchema.safeParse(values, { jitless: true });
  for (const issue of error?.issues ?? []) for (const one of toFindings(issue, workflowSchema, values)) report(one);
  const raw = fieldsOf(values);
  const rawSteps = Object.entries(fieldsOf(raw.steps));
  const names = rawSteps.map(([name]) => name);
  if (isObject(raw.steps) && names.length === 0) report({ path: ["steps"], message: "needs at least one step" });

  const needs = new Map<string, readonly string[]>();
  const compiled = new Map<string, Step>();
  for (const [name, value] of rawSteps) {
    const path = ["steps", name];
    // The schema passes over this one name.
    if (name === "__proto__") report({ path, message: STEP_NAME_ERROR, atKey: true });
    const place = reading.position?.(path, { atKey: true, fragment: "" });
    const around = {
      name,
      steps: names,
      position: place && { file: reading.source, ...place },
      report: (one: StepFinding) => report({ ...one, path: [...path, ...one.path] }),
      subWorkflow: (source: unknown) => readSubWorkflow(source, [...path, "workflow"], reading, report),
    };
    const result = compileStep(value, around);
    needs.set(name, result.needs);
    if (result.step !== undefined) compiled.set(name, result.step);
  }
  const { order, cycles } = orderSteps(needs);
  for (const [first = "", ...others] of cycles) {
    const cycle = [first, ...others, first].join(" → ");
    if (others.length > 0) report({ path: ["steps", first], message: `steps need each other: ${cycle}`, atKey: true });
  }
  checkOutput(raw.output, names, report);
  const steps = new Map(names.flatMap((name) => (compiled.has(name) ? [[name, compiled.get(name) as Step]] : [])));
  if (countSteps(steps) > MAX_STEPS) report({ path: ["steps"], message: `has more than ${MAX_STEPS} steps` });
  if (data === undefined || problems.length > known) return undefined;
  const needed = new Set([...steps.values()].flatMap((step) => step.needs));
  const output = data.output ?? names.filter((name) => !needed.has(name));
  const { name, description } = data;
  return { name, description, steps, output, order };
}

function checkOutput(output: unknown, names: readonly string[], report: (finding: StepFinding) => void): void {
  const given = listOf(output);
  for (const [at, name] of given.entries()) {
    if (typeof name !== "string" || name === "") continue;
    if (!names.includes(name)) report({ path: ["output", at], message: unknownStep(name, names) });
    else if (given.indexOf(name) < at) report({ path: ["output", at], message: "is named twice" });
  }
}

function readSubWorkflow(
  source: unknown,
  path: Path,
  reading: Reading,
  report: (finding: StepFinding) => void,
): Workflow | undefined {
  if (isWorkflow(source)) return source;
  if (reading.depth === MAX_NESTING) {
    report({ path, message: `workflows are nested more than ${MAX_NESTING} deep` });
    return undefined;
  }
  const depth = reading.depth + 1;
  if (typeof source === "string") {
    const opened = reading.openFile(source, depth);
    if (typeof opened !== "string") return opened;
    report({ path, message: opened });
    return undefined;
  }
  const place = reading.position;
  const position = place && ((inner: Path, options: PositionOptions) => place([...path, ...inner], options));
  return compileWorkflow(source, { ...reading, depth, position, path: [...reading.path, ...path] });
}

/** A workflow that was built, not read. */
export function isWorkflow(source: unknown): source is Workflow {
  return isObject(source) && fieldsOf(source).steps instanceof Map;
}

/** With those of sub-workflows, which count as often as they are used. */
function countSteps(steps: ReadonlyMap<string, Step>): number {
  let count = 0;
  for (const { target } of steps.values()) {
    count += 1 + ("workflow" in target ? countSteps(target.workflow.steps) : 0);
    if (count > MAX_STEPS) break;
  }
  return count;
}
