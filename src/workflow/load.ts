import { readFileSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { hasErrorCode } from "../model/errors.ts";
import { fieldsOf, isObject, listOf, omitUndefined } from "../model/json.ts";
import { type Position, YamlDocument } from "../yaml/document.ts";
import { ConfigError, formatPath, type Path, type Problem, toFindings } from "../yaml/problems.ts";
import { compileStep, type StepFinding } from "./compile-step.ts";
import { orderSteps } from "./order.ts";
import type { Step, Workflow } from "./plan.ts";
import { unknownStep } from "./references.ts";
import { workflowSchema } from "./schema.ts";

/** Of a workflow with all of its sub-workflows. */
const MAX_STEPS = 1_000;
const MAX_NESTING = 16;
const MAX_FILE_BYTES = 1_048_576;

export interface ParseOptions {
  /** Name of the text in messages. */
  readonly source: string;
  /** Files of sub-workflows are relative to it; default: the working directory. */
  readonly folder?: string;
  /** For an object: its place in the file `source`, before the paths in messages. */
  readonly path?: Path;
  /** For an object: where its values are in the file. */
  readonly position?: (path: Path, options: { readonly atKey: boolean; readonly fragment: string }) => Position;
}

/** Reads a workflow from a file. Throws a ConfigError with all problems, also those of its sub-workflows. */
export async function loadWorkflow(file: string): Promise<Workflow> {
  const found: Found = { problems: [], loaded: new Map() };
  try {
    return finish(readFile(file, file, [], found), found);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    throw new ConfigError([{ source: file, line: undefined, column: undefined, path: "", message: error.message }]);
  }
}

/** Like `loadWorkflow`, for the text of a file or for its content as an object. */
export function parseWorkflow(given: string | object, options: ParseOptions): Workflow {
  const found: Found = { problems: [], loaded: new Map() };
  const { source, folder = process.cwd(), path = [], position } = options;
  const reading = { source, folder, path, files: [], depth: 0, found };
  const workflow =
    typeof given === "string"
      ? readText(given, reading)
      : readValues(given, { ...reading, ...omitUndefined({ position }) });
  return finish(workflow, found);
}

function finish(workflow: Workflow | undefined, { problems }: Found): Workflow {
  if (problems.length === 0 && workflow !== undefined) return workflow;
  throw new ConfigError([...problems].sort(byPlace));
}

/** Problems of the same file by their position; files in the order in which they were read. */
function byPlace(one: Problem, other: Problem): number {
  if (one.source !== other.source) return 0;
  return (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0);
}

/** What is gathered while a workflow and its sub-workflows are read. */
interface Found {
  readonly problems: Problem[];
  /** Each file is read once; undefined: it has problems. */
  readonly loaded: Map<string, Workflow | undefined>;
}

interface Reading extends Required<Omit<ParseOptions, "position">> {
  readonly position?: ParseOptions["position"];
  /** The files that led here, absolute. */
  readonly files: readonly string[];
  readonly depth: number;
  readonly found: Found;
}

/** `name` is what messages call the file. Throws an UnreadableFile. */
function readFile(file: string, name: string, files: readonly string[], found: Found, depth = 0): Workflow | undefined {
  const absolute = resolve(file);
  if (found.loaded.has(absolute)) return found.loaded.get(absolute);
  const reading = { source: name, folder: dirname(absolute), path: [], files: [...files, absolute], depth, found };
  const workflow = readText(readBounded(absolute), reading);
  found.loaded.set(absolute, workflow);
  return workflow;
}

class UnreadableFile extends Error {}

function readBounded(file: string): string {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw new UnreadableFile("is not a file");
    if (stats.size > MAX_FILE_BYTES) throw new UnreadableFile("is larger than 1 MiB");
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof UnreadableFile) throw cause;
    const reason = hasErrorCode(cause, "ENOENT")
      ? "file not found"
      : cause instanceof Error
        ? cause.message
        : String(cause);
    throw new UnreadableFile(reason, { cause });
  }
}

function readText(text: string, reading: Reading): Workflow | undefined {
  const document = new YamlDocument(text, reading.source, {});
  if (document.values === undefined) {
    reading.found.problems.push(...document.problems);
    return undefined;
  }
  return readValues(document.values, { ...reading, position: (path, options) => document.position(path, options) });
}

function readValues(values: unknown, reading: Reading): Workflow | undefined {
  const { problems } = reading.found;
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
  return { ...omitUndefined({ name, description }), steps, output, order };
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
  if (typeof source !== "string") {
    const { position } = reading;
    const below =
      position && ((inner: Path, options: Parameters<typeof position>[1]) => position([...path, ...inner], options));
    const inner = { ...reading, depth, path: [...reading.path, ...path] };
    return readValues(source, below === undefined ? inner : { ...inner, position: below });
  }
  const file = resolve(reading.folder, source);
  const at = reading.files.indexOf(file);
  if (at >= 0) {
    const chain = [...reading.files.slice(at), file].map((one) => basename(one)).join(" → ");
    report({ path, message: `workflows call each other: ${chain}` });
    return undefined;
  }
  const name = isAbsolute(source) ? source : join(dirname(reading.source), source);
  try {
    return readFile(file, name, reading.files, reading.found, depth);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    report({ path, message: `cannot read ${name}: ${error.message}` });
    return undefined;
  }
}

/** A workflow that was built, not read. */
function isWorkflow(source: unknown): source is Workflow {
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
