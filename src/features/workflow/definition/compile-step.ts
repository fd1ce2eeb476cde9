import { isObject, type JsonValue, type Writable } from "../../../core/model/json.ts";
import { type Finding, type Path, toFindings } from "../../../core/yaml/problems.ts";
import { ExpressionError, parseCondition, printReference } from "./expression.ts";
import { checkSchema } from "./output-schema.ts";
import type {
  Condition,
  InputTemplate,
  Reference,
  Step,
  StepPosition,
  StepTarget,
  Template,
  Workflow,
} from "./plan.ts";
import { checkReference, unknownStates, unknownStep } from "./references.ts";
import { FOREACH_ONLY, type ParsedStep, stepSchema, TARGETS } from "./schema.ts";
import { isReferenceToParts, parseTemplate, referencesOf } from "./template.ts";

/** More would be hard on one agent, and fewer make a list slow. */
const DEFAULT_CONCURRENCY = 4;

/** A problem with a step; `fragment` is the piece of the value that is wrong. */
export interface StepFinding extends Finding {
  readonly fragment?: string;
}

export interface StepSurroundings {
  readonly name: string;
  /** The names of all steps. */
  readonly steps: readonly string[];
  readonly position: StepPosition | undefined;
  /** Paths are relative to the step. */
  report(finding: StepFinding): void;
  /** The workflow of a step that is one: a file, or its content. Undefined if it has problems, which were reported. */
  subWorkflow(source: unknown): Workflow | undefined;
}

/** The schema is used once for each step: compiling it costs more than it saves. */
const PARSE_PARAMS = { jitless: true };

/**
 * A step from its keys in the file, with all problems reported. What it needs is known even if it has some, so that the
 * graph can be checked as well.
 */
export function compileStep(
  raw: unknown,
  around: StepSurroundings,
): { readonly needs: readonly string[]; readonly step?: Step } {
  const { data, isWhole } = validate(raw, around);
  if (data === undefined) return { needs: [] };
  checkKeys(data, isWhole, around);
  const { input, when, foreach, implied } = readTemplates(data, around);
  const needs = [...new Set([...data.needs, ...implied])];
  if (data.outputSchema !== undefined) {
    const schema = data.outputSchema as Parameters<typeof checkSchema>[0];
    for (const found of checkSchema(schema)) around.report({ ...found, path: ["outputSchema", ...found.path] });
  }
  const target = readTarget(data, around);
  if (target === undefined) return { needs };
  const { attempts, delay, maxDelay } = data.retry;
  const { timeout: timeoutMs, outputSchema } = data;
  return {
    needs,
    step: {
      name: around.name,
      target,
      needs,
      concurrency: data.concurrency ?? DEFAULT_CONCURRENCY,
      retry: { attempts, baseMs: delay, capMs: Math.max(delay, maxDelay) },
      onFailure: data.onFailure,
      input,
      when,
      foreach,
      timeoutMs,
      position: around.position,
      outputSchema: outputSchema as Step["outputSchema"],
    },
  };
}

/** The keys that are valid; those that are not are reported. */
function validate(raw: unknown, { report }: StepSurroundings) {
  const { error, data } = stepSchema.safeParse(raw, PARSE_PARAMS);
  const findings = error?.issues.flatMap((issue) => toFindings(issue, stepSchema, raw)) ?? [];
  for (const found of findings) report(found);
  if (findings.length === 0 || !isObject(raw)) return { data, isWhole: true };
  const faulty = new Set(findings.map(({ path: [key] }) => key));
  const rest = Object.fromEntries(Object.entries(raw).filter(([key]) => !faulty.has(key)));
  return { data: stepSchema.safeParse(rest, PARSE_PARAMS).data, isWhole: false };
}

/** Rules between keys. */
function checkKeys(data: ParsedStep, isWhole: boolean, { name, report, steps }: StepSurroundings): void {
  const targets = TARGETS.filter((target) => data[target] !== undefined);
  if (targets.length === 0 && isWhole) report({ path: [], message: `needs one of ${TARGETS.join(", ")}`, atKey: true });
  if (targets.length > 1) {
    report({ path: [], message: `has ${targets.join(" and ")}; a step calls only one of them`, atKey: true });
  }
  if (data.foreach === undefined && isWhole) {
    for (const key of FOREACH_ONLY.filter((one) => data[one] !== undefined)) {
      report({ path: [key], message: "has a meaning only beside foreach", atKey: true });
    }
  }
  for (const [at, need] of data.needs.entries()) {
    const path = ["needs", at];
    if (need === name) report({ path, message: "a step cannot need itself" });
    else if (!steps.includes(need)) report({ path, message: unknownStep(need, steps) });
  }
}

function readTarget(data: ParsedStep, around: StepSurroundings): StepTarget | undefined {
  const { agent, url, skill } = data;
  if (agent !== undefined) return { agent };
  if (url !== undefined) return { url };
  if (skill !== undefined) return { skill };
  const workflow = data.workflow === undefined ? undefined : around.subWorkflow(data.workflow);
  return workflow && { workflow };
}

/** The templates of a step, with the steps that they refer to: those have to end first, whether `needs` says so or not. */
function readTemplates(data: ParsedStep, around: StepSurroundings) {
  const { report, name, steps } = around;
  const implied = new Set<string>();
  const hasForeach = data.foreach !== undefined;
  /** Parses, checks the references, and reports what is wrong. */
  const read = <T extends Template | Condition>(path: Path, hasItem: boolean, parse: () => T): T | undefined => {
    try {
      const parsed = parse();
      for (const reference of referencesOf(parsed)) {
        const fragment = printReference(reference);
        const message = checkReference(reference, { step: name, steps, hasItem });
        const [root, step = ""] = reference.path;
        if (message !== undefined) report({ path, message, fragment });
        else if (root === "steps") implied.add(step);
      }
      return parsed;
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      report({ path, message: error.message, fragment: error.fragment });
      return undefined;
    }
  };
  const readText = (path: Path, text: string, hasItem = hasForeach) => read(path, hasItem, () => parseTemplate(text));

  const readValue = (path: Path, value: JsonValue, hasItem = hasForeach): Template | undefined => {
    if (typeof value === "string") return readText(path, value, hasItem);
    if (Array.isArray(value)) {
      const items = value.map((item, at) => readValue([...path, at], item, hasItem));
      return { kind: "list", items: items.filter((item) => item !== undefined) };
    }
    if (!isObject(value)) return { kind: "literal", value: value as string | number | boolean | null };
    const members = new Map<string, Template>();
    for (const [key, member] of Object.entries(value)) {
      const template = member === undefined ? undefined : readValue([...path, key], member, hasItem);
      if (template !== undefined) members.set(key, template);
    }
    return { kind: "map", members };
  };

  const readParts = (given: string | readonly string[]): readonly Reference[] =>
    (typeof given === "string" ? [given] : given).flatMap((text, at) => {
      const path = typeof given === "string" ? ["input", "parts"] : ["input", "parts", at];
      const reference = readText(path, text);
      if (reference === undefined) return [];
      if (reference.kind === "reference" && isReferenceToParts(reference)) return [reference];
      report({ path, message: "must be ${input.parts} or ${steps.NAME.artifacts}, and nothing else" });
      return [];
    });

  const readInput = (given: NonNullable<ParsedStep["input"]>): InputTemplate | undefined => {
    if (typeof given === "string") {
      const value = readText(["input"], given);
      return value && { value };
    }
    const input: Writable<Exclude<InputTemplate, { value: Template }>> = {};
    const text = given.text === undefined ? undefined : readText(["input", "text"], given.text);
    const data = given.data === undefined ? undefined : readValue(["input", "data"], given.data);
    if (text !== undefined) input.text = text;
    if (data !== undefined) input.data = data;
    if (given.parts !== undefined) input.parts = readParts(given.parts);
    if (Object.keys(given).length === 0) report({ path: ["input"], message: "needs text, data or parts" });
    return input;
  };

  const readWhen = (given: string): Condition | undefined => {
    const condition = read(["when"], false, () => parseCondition(given));
    if (condition === undefined) return undefined;
    if (referencesOf(condition).next().done === true) {
      report({
        path: ["when"],
        message: "refers to nothing, so it is always the same; write ${steps.NAME.state} or the like",
      });
    }
    for (const message of unknownStates(condition)) report({ path: ["when"], message });
    return condition;
  };

  const readForeach = (given: NonNullable<ParsedStep["foreach"]>): Template | undefined => {
    const template = readValue(["foreach"], given, false);
    if (typeof given === "string" && template !== undefined && template.kind !== "reference") {
      report({ path: ["foreach"], message: "must be one ${…} and nothing else, or a list" });
    }
    return template;
  };

  const input = data.input === undefined ? undefined : readInput(data.input);
  const when = data.when === undefined ? undefined : readWhen(data.when);
  const foreach = data.foreach === undefined ? undefined : readForeach(data.foreach);
  return { input, when, foreach, implied };
}
