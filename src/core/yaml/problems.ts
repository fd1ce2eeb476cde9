import type { z } from "zod";
import { closestMatch } from "../model/suggestions.ts";

export interface Finding {
  readonly path: Path;
  readonly message: string;
  /** The key itself is wrong, not its value. */
  readonly atKey?: boolean;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "a map of keys",
  record: "a map of keys",
  array: "a list",
};

/** What is wrong with a key that the schema does not have, or with a choice; undefined: it is unknown. */
export type DescribeKey = (path: Path, choice?: string) => string | undefined;

/** Translates a validation issue into findings for the author of the file. */
export function toFindings(
  issue: z.core.$ZodIssue,
  schema: z.core.$ZodType,
  values: unknown,
  describeKey: DescribeKey = () => undefined,
): readonly Finding[] {
  const { path } = issue;
  const at = (message: string, atKey = false): readonly Finding[] => [{ path, message, atKey }];
  switch (issue.code) {
    case "unrecognized_keys": {
      const known = keysAt(schema, path);
      const unknown = issue.keys.map((key) => [...path, key]);
      return unknown.map((key) => ({ path: key, message: describeKey(key) ?? unknownKey(key, known), atKey: true }));
    }
    case "invalid_key":
      return at(issue.issues[0]?.message ?? issue.message, true);
    case "invalid_type":
      return at(wrongType(issue.expected, issue.message, valueAt(values, path)));
    case "invalid_value": {
      const value = valueAt(values, path);
      const reason = typeof value === "string" ? describeKey(path, value) : undefined;
      return at(reason ?? wrongChoice(issue.values.map(String), value));
    }
    case "too_small":
      return at(
        isNumeric(issue.origin) && issue.inclusive === true ? `must be ${issue.minimum} or more` : issue.message,
      );
    case "too_big":
      return at(isNumeric(issue.origin) ? `must be ${issue.maximum} or less` : issue.message);
    case "invalid_union":
      return unionFindings(issue, schema, values, describeKey) ?? at(issue.message);
    default:
      return at(issue.message);
  }
}

/** The problems of the alternative whose type was chosen; undefined if none was, or it cannot be known. */
function unionFindings(
  { errors, path }: z.core.$ZodIssueInvalidUnion,
  schema: z.core.$ZodType,
  values: unknown,
  describeKey: DescribeKey,
): readonly Finding[] | undefined {
  const isOfType = (issues: readonly z.core.$ZodIssue[]) =>
    issues.every((issue) => issue.path.length > 0 || issue.code !== "invalid_type");
  const chosen = errors.filter(isOfType);
  if (chosen.length !== 1) return undefined;
  return chosen[0]?.flatMap((issue) =>
    toFindings({ ...issue, path: [...path, ...issue.path] }, schema, values, describeKey),
  );
}

function unknownKey(path: Path, known: readonly string[]): string {
  const meant = closestMatch(String(path.at(-1)), known);
  return meant === undefined
    ? `unknown key; known here are ${known.join(", ")}`
    : `unknown key; did you mean "${meant}"?`;
}

function wrongType(expected: string, message: string, value: unknown): string {
  if (value === undefined) return "is required";
  // A message of the schema is more specific than the name of a type.
  if (!message.startsWith("Invalid input")) return message;
  return `must be ${TYPE_NAMES[expected] ?? expected}, not ${nameOf(value)}`;
}

function wrongChoice(choices: readonly string[], value: unknown): string {
  const meant = typeof value === "string" ? closestMatch(value, choices) : undefined;
  return `must be one of ${choices.join(", ")}${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
}

const isNumeric = (origin: string) => origin === "number" || origin === "int";

function nameOf(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map of keys";
  // Never shows strings: one may be a secret from a misplaced variable.
  return typeof value === "string" ? "text" : String(value);
}

export function valueAt(values: unknown, path: Path): unknown {
  let value = values;
  for (const step of path)
    value = isContainer(value) && Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined;
  return value;
}

/** An object or a list: what a path can lead through. */
export const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The keys that a map at this path may have. */
function keysAt(schema: z.core.$ZodType, path: Path): readonly string[] {
  let current: z.core.$ZodType | undefined = schema;
  for (const step of path) current = current && childOf(current, step);
  const def = current && defOf(current);
  if (def?.type === "union") return def.options.flatMap((option) => keysAt(option, []));
  return def?.type === "object" ? Object.keys(def.shape) : [];
}

function childOf(schema: z.core.$ZodType, step: PropertyKey): z.core.$ZodType | undefined {
  const def = defOf(schema);
  if (def.type === "object") return def.shape[String(step)];
  if (def.type === "record") return def.valueType;
  return def.type === "array" ? def.element : undefined;
}

/** Without wrappers. */
function defOf(schema: z.core.$ZodType): z.core.$ZodTypes["_zod"]["def"] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "optional" || def.type === "default" || def.type === "prefault") return defOf(def.innerType);
  return def.type === "pipe" ? defOf(def.in) : def;
}

export type Path = readonly PropertyKey[];

/** A problem with a configuration, and its position. */
export interface Problem {
  /** Path of the key, e.g. `server.port`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  /** Name of the file as given, or another origin of the value. */
  readonly source: string;
  /** Starts at 1; undefined if the value does not come from a file. */
  readonly line: number | undefined;
  readonly column: number | undefined;
}

/** An invalid configuration, with all problems found. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(problems.map(formatProblem).join("\n"), options);
    this.problems = problems;
  }
}

function formatProblem({ source, line, column, path, message }: Problem): string {
  const where = line === undefined ? source : `${source}:${line}:${column}`;
  return path === "" ? `${where}: ${message}` : `${where}: ${path}: ${message}`;
}

/** Formats `["agents", "a", "exec", 0]` as `agents.a.exec[0]`. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}
