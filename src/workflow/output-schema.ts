/**
 * JSON Schema for what a step returns. Schemas are interpreted, not compiled to code, and a keyword that would not be
 * checked is refused when the file is read.
 */

import { isObject, type JsonObject, type JsonValue } from "../model/json.ts";
import { closestMatch } from "../model/suggestions.ts";
import { type Finding, formatPath, type Path } from "../yaml/problems.ts";

const MAX_PROBLEMS = 10;
/** Applications of a schema to a value, for all of one result: a schema may refer to itself. */
const MAX_CHECKS = 200_000;
const MAX_DEPTH = 200;

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
const TYPE_NAMES: Readonly<Record<string, string>> = { object: "a map", array: "a list", string: "text" };

type Kind = "any" | "count" | "number" | "text" | "names" | "list" | "schema" | "schemas" | "schema-map" | "pattern";

/** The keywords of JSON Schema 2020-12 that are checked, and what each takes; then those that only describe. */
const KEYWORDS: Readonly<Record<string, Kind>> = {
  type: "any",
  enum: "list",
  const: "any",
  properties: "schema-map",
  required: "names",
  additionalProperties: "schema",
  minProperties: "count",
  maxProperties: "count",
  items: "schema",
  minItems: "count",
  maxItems: "count",
  uniqueItems: "any",
  minLength: "count",
  maxLength: "count",
  pattern: "pattern",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "number",
  anyOf: "schemas",
  oneOf: "schemas",
  allOf: "schemas",
  not: "schema",
  $ref: "text",
  $defs: "schema-map",
  definitions: "schema-map",
  ...{ $schema: "any", $id: "any", $comment: "any", title: "any", description: "any", default: "any", examples: "any" },
  ...{ format: "any", deprecated: "any", readOnly: "any", writeOnly: "any" },
};

/** What is wrong with a schema. */
export function checkSchema(root: JsonObject): readonly Finding[] {
  return [...schemaFindings(root, root, [])];
}

function* schemaFindings(schema: JsonValue, root: JsonObject, path: Path): Generator<Finding, void, undefined> {
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) {
    yield { path, message: "must be a JSON Schema" };
    return;
  }
  if (path.length > MAX_DEPTH) {
    yield { path, message: "is nested too deeply" };
    return;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const at = [...path, keyword];
    const kind = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined;
    const problem = kind === undefined ? unknownKeyword(keyword) : keywordProblem(keyword, kind, value, root);
    if (problem !== undefined) yield { path: at, message: problem, atKey: kind === undefined };
    else if (kind === "schema") yield* schemaFindings(value, root, at);
    else if (kind === "schemas" || kind === "schema-map") {
      for (const [key, member] of Array.isArray(value) ? value.entries() : Object.entries(value as JsonObject)) {
        yield* schemaFindings(member, root, [...at, key]);
      }
    }
  }
}

function unknownKeyword(keyword: string): string {
  const meant = closestMatch(keyword, Object.keys(KEYWORDS));
  return `this keyword is not supported${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
}

function keywordProblem(keyword: string, kind: Kind, value: JsonValue, root: JsonObject): string | undefined {
  const isList = Array.isArray(value);
  if (keyword === "type") {
    const isType = (name: JsonValue) => TYPES.some((type) => type === name);
    return (isList ? value.length > 0 && value.every(isType) : isType(value))
      ? undefined
      : `must be one of ${TYPES.join(", ")}`;
  }
  if (keyword === "$ref")
    return refTarget(value, root) === undefined ? "must be # or #/$defs/NAME of this schema" : undefined;
  switch (kind) {
    case "count":
      return Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : "must be a whole number of 0 or more";
    case "number":
      return typeof value === "number" && (keyword !== "multipleOf" || value > 0) ? undefined : "must be a number";
    case "names":
      return isList && value.every((name) => typeof name === "string") ? undefined : "must be a list of names";
    case "list":
      return isList ? undefined : "must be a list";
    case "schemas":
      return isList && value.length > 0 ? undefined : "must be a list of schemas";
    case "schema-map":
      return isObject(value) ? undefined : "must be a map of schemas";
    case "pattern":
      return toPattern(value) === undefined ? "must be a regular expression" : undefined;
    default:
      return undefined;
  }
}

function refTarget(ref: JsonValue, root: JsonObject): JsonValue | undefined {
  if (ref === "#") return root;
  const [, defs = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(ref)) ?? [];
  const held = Object.hasOwn(root, defs) ? root[defs] : undefined;
  return isObject(held) && Object.hasOwn(held, name) ? held[name] : undefined;
}

function toPattern(value: JsonValue): RegExp | undefined {
  try {
    return typeof value === "string" ? new RegExp(value, "u") : undefined;
  } catch {
    return undefined;
  }
}

/** What is wrong with the data that a step returned, each problem with its path; empty if it fits the schema. */
export function checkOutput(schema: JsonObject, value: JsonValue | undefined): readonly string[] {
  if (value === undefined) return ["the step returned no data"];
  let checks = 0;
  const isSpent = (depth: number) => ++checks > MAX_CHECKS || depth > MAX_DEPTH;

  function* apply(rule: JsonValue, data: JsonValue, path: Path, depth: number): Generator<string, void, undefined> {
    const where = path.length === 0 ? "" : `${formatPath(path)}: `;
    if (rule === true) return;
    if (rule === false || isSpent(depth)) {
      yield `${where}${rule === false ? "is not allowed" : "cannot be checked, it is too large or nested too deeply"}`;
      return;
    }
    const { $ref, anyOf, oneOf, allOf, not } = rule as JsonObject;
    const next = depth + 1;
    const fits = (other: JsonValue) => apply(other, data, path, next).next().done === true;
    for (const message of ownProblems(rule as JsonObject, data)) yield `${where}${message}`;
    if ($ref !== undefined) yield* apply(refTarget($ref, schema) ?? true, data, path, next);
    for (const one of (allOf as readonly JsonValue[] | undefined) ?? []) yield* apply(one, data, path, next);
    if (Array.isArray(anyOf) && !anyOf.some(fits)) yield `${where}fits none of anyOf`;
    if (Array.isArray(oneOf)) {
      const count = oneOf.filter(fits).length;
      if (count !== 1) yield `${where}fits ${count === 0 ? "none" : String(count)} of oneOf, not exactly one`;
    }
    if (not !== undefined && fits(not)) yield `${where}must not fit the schema of not`;
    for (const [key, member, inner] of membersOf(rule as JsonObject, data)) {
      yield* apply(inner, member, [...path, key], next);
    }
  }

  const problems: string[] = [];
  for (const problem of apply(schema, value, [], 0)) {
    problems.push(problem);
    if (problems.length === MAX_PROBLEMS) break;
  }
  return problems;
}

/** Members and items with the schemas that apply to them. */
function* membersOf(
  rule: JsonObject,
  data: JsonValue,
): Generator<[key: PropertyKey, member: JsonValue, rule: JsonValue]> {
  const { items, properties, additionalProperties } = rule;
  if (Array.isArray(data)) {
    if (items !== undefined) for (const [at, item] of data.entries()) yield [at, item, items];
  } else if (isObject(data)) {
    const named = isObject(properties) ? properties : {};
    for (const [key, member] of Object.entries(data)) {
      const inner = Object.hasOwn(named, key) ? named[key] : additionalProperties;
      if (inner !== undefined) yield [key, member, inner];
    }
  }
}

/** Of the value itself, not of what is in it. */
function* ownProblems(rule: JsonObject, data: JsonValue): Generator<string, void, undefined> {
  const { type, enum: choices, const: constant } = rule;
  const types = (Array.isArray(type) ? type : type === undefined ? [] : [type]).map(String);
  if (types.length > 0 && !types.some((name) => isOfType(data, name))) {
    yield `must be ${types.map((name) => TYPE_NAMES[name] ?? name).join(" or ")}, not ${describe(data)}`;
    return;
  }
  if (Array.isArray(choices) && !choices.some((choice) => canonical(choice) === canonical(data))) {
    yield `must be one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}`;
  }
  if (constant !== undefined && canonical(constant) !== canonical(data)) yield `must be ${JSON.stringify(constant)}`;
  if (typeof data === "string") yield* textProblems(rule, data);
  else if (typeof data === "number") yield* numberProblems(rule, data);
  else if (Array.isArray(data)) {
    yield* countProblems(data.length, rule.minItems, rule.maxItems, "items");
    if (rule.uniqueItems === true && new Set(data.map(canonical)).size < data.length) yield "has items that are equal";
  } else if (isObject(data)) {
    yield* countProblems(Object.keys(data).length, rule.minProperties, rule.maxProperties, "members");
    for (const name of (rule.required as readonly string[] | undefined) ?? []) {
      if (!Object.hasOwn(data, name)) yield `${name} is required`;
    }
  }
}

function* textProblems({ minLength, maxLength, pattern }: JsonObject, text: string): Generator<string> {
  if (minLength !== undefined || maxLength !== undefined) {
    yield* countProblems([...text].length, minLength, maxLength, "characters");
  }
  if (pattern !== undefined && toPattern(pattern)?.test(text) === false) yield `must match ${String(pattern)}`;
}

function* numberProblems(rule: JsonObject, value: number): Generator<string> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rule;
  if (typeof minimum === "number" && value < minimum) yield `must be ${minimum} or more`;
  if (typeof maximum === "number" && value > maximum) yield `must be ${maximum} or less`;
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) yield `must be more than ${exclusiveMinimum}`;
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) yield `must be less than ${exclusiveMaximum}`;
  if (typeof multipleOf === "number" && !Number.isInteger(value / multipleOf))
    yield `must be a multiple of ${multipleOf}`;
}

function* countProblems(count: number, least: unknown, most: unknown, what: string): Generator<string> {
  if (typeof least === "number" && count < least) yield `must have at least ${least} ${what}, not ${count}`;
  if (typeof most === "number" && count > most) yield `must have at most ${most} ${what}, not ${count}`;
}

function isOfType(data: JsonValue, type: string): boolean {
  if (type === "integer") return typeof data === "number" && Number.isInteger(data);
  if (type === "object") return isObject(data);
  if (type === "array") return Array.isArray(data);
  return type === "null" ? data === null : typeof data === type;
}

function describe(data: JsonValue): string {
  if (data === null) return "null";
  if (Array.isArray(data)) return "a list";
  return typeof data === "object" ? "a map" : typeof data === "string" ? "text" : String(data);
}

/** Equal values have equal texts, whatever the order of their members. */
function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`);
  return `{${members.sort().join()}}`;
}
