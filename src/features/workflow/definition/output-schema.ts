/**
 * JSON Schema 2020-12 for what a step returns. A keyword that would not be checked is refused when the file is read; the
 * data is checked on a thread, by a library that interprets schemas.
 */

import type { OutputUnit } from "@cfworker/json-schema";
import { z } from "zod";
import { isObject, type JsonObject, type JsonValue } from "../../../core/model/json.ts";
import { closestMatch } from "../../../core/model/suggestions.ts";
import { type Finding, formatPath, type Path, toFindings } from "../../../core/yaml/problems.ts";
import { checkOnThread } from "./check-thread.ts";

const MAX_DEPTH = 200;
/** Maps, lists and what is in them, of one result. */
const MAX_VALUES = 200_000;
/** Beyond so many the first problem is enough: each takes more space than the value it is about. */
const MAX_VALUES_CHECKED_FULLY = 10_000;
const MAX_PROBLEMS = 10;
/** Names of members come from the agent. */
const MAX_PROBLEM_LENGTH = 300;

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
const TYPE_ERROR = `must be one of ${TYPES.join(", ")}`;
const COUNT_ERROR = "must be a whole number of 0 or more";
const REF_ERROR = "must be # or #/$defs/NAME of this schema";
const PATTERN_ERROR = "must be a regular expression";

/** The schemas inside `root`: each keyword with what it takes. */
function schemaTypeIn(root: JsonObject) {
  const schema: z.ZodType = z.lazy(() => z.union([z.boolean(), keywords], { error: "must be a JSON Schema" }));
  const schemas = z.array(schema).min(1, { error: "must be a list of schemas" });
  const schemaMap = z.record(z.string(), schema);
  const pattern = z.string({ error: PATTERN_ERROR }).refine(isPattern, { error: PATTERN_ERROR });
  const type = z.enum(TYPES, { error: TYPE_ERROR });
  const names = z.array(z.string(), { error: "must be a list of names" });
  const count = z.int({ error: COUNT_ERROR }).min(0, { error: COUNT_ERROR });
  const keywords = z
    .strictObject({
      $ref: z.string().refine((ref) => hasTarget(ref, root), { error: REF_ERROR }),
      type: z.union([type, z.array(type).min(1)], { error: TYPE_ERROR }),
      enum: z.array(z.json()),
      const: z.json(),
      ...each(["anyOf", "oneOf", "allOf", "prefixItems"], schemas),
      ...each(["not", "if", "then", "else", "items", "contains", "unevaluatedItems"], schema),
      ...each(["additionalProperties", "unevaluatedProperties", "propertyNames"], schema),
      ...each(["$defs", "definitions", "properties", "dependentSchemas"], schemaMap),
      patternProperties: z.record(pattern, schema),
      required: names,
      dependentRequired: z.record(z.string(), names),
      ...each(["minProperties", "maxProperties", "minItems", "maxItems", "minContains", "maxContains"], count),
      ...each(["minLength", "maxLength"], count),
      uniqueItems: z.boolean(),
      pattern,
      format: z.string(),
      ...each(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], z.number()),
      multipleOf: z.number().gt(0, { error: "must be more than 0" }),
      // The rest only describes.
      ...each(["$schema", "$comment", "title", "description"], z.string()),
      ...each(["deprecated", "readOnly", "writeOnly"], z.boolean()),
      default: z.json(),
      examples: z.array(z.json()),
    })
    .partial();
  return keywords;
}

function each<T extends z.ZodType>(keywords: readonly string[], type: T): Record<string, T> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, type]));
}

/** What is wrong with a schema. Its id says nothing here, as nothing else can refer to it. */
export function checkSchema(root: JsonObject): readonly Finding[] {
  if (countValues(root) > MAX_VALUES) return [{ path: [], message: "is too large or nested too deeply" }];
  const { $id: _, ...schema } = root;
  const type = schemaTypeIn(root);
  const { error } = type.safeParse(schema, { jitless: true });
  const describeKey = (path: Path, choice?: string) =>
    choice === undefined ? unknownKeyword(String(path.at(-1)), Object.keys(type.shape)) : undefined;
  return error?.issues.flatMap((issue) => toFindings(issue, type, schema, describeKey)) ?? [];
}

function unknownKeyword(keyword: string, known: readonly string[]): string {
  const meant = closestMatch(keyword, known);
  return `this keyword is not supported${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
}

function hasTarget(ref: string, root: JsonObject): boolean {
  if (ref === "#") return true;
  const [, defs = "", name = ""] = /^#\/(\$defs|definitions)\/([\p{L}\p{N}_.-]+)$/u.exec(ref) ?? [];
  const held = Object.hasOwn(root, defs) ? root[defs] : undefined;
  return isObject(held) && Object.hasOwn(held, name);
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** What is wrong with the data that a step returned, each problem with its place; empty if it fits the schema. */
export async function checkOutput(schema: JsonObject, value: JsonValue | undefined): Promise<readonly string[]> {
  if (value === undefined) return ["the step returned no data"];
  const count = countValues(value);
  if (count > MAX_VALUES) return [TOO_LARGE];
  // An id would change what references are relative to.
  const { $id: _, ...own } = schema;
  const result = await checkOnThread(own, value, count > MAX_VALUES_CHECKED_FULLY);
  if ("errors" in result) return toProblems(result.errors).slice(0, MAX_PROBLEMS);
  if ("message" in result) return [`cannot be checked: ${result.message.slice(0, MAX_PROBLEM_LENGTH)}`];
  // A schema that refers to itself at the same place exhausts the stack, as do many problems at once.
  return [result.failure === "size" ? TOO_LARGE : "cannot be checked, it takes too long"];
}

const TOO_LARGE = "cannot be checked, it is too large or nested too deeply";

/** Infinity if the value is nested too deeply. */
function countValues(value: JsonValue | undefined, depth = 0): number {
  if (typeof value !== "object" || value === null) return 1;
  if (depth === MAX_DEPTH) return Number.POSITIVE_INFINITY;
  let count = 1;
  for (const member of Object.values(value)) {
    count += countValues(member, depth + 1);
    if (count > MAX_VALUES) break;
  }
  return count;
}

/** Followed by what is wrong inside, which says it better. */
const WRAPPERS: ReadonlySet<string> = new Set([
  ...["$ref", "allOf", "if", "dependentSchemas", "properties", "patternProperties", "additionalProperties"],
  ...["unevaluatedProperties", "items", "prefixItems", "unevaluatedItems"],
]);
/** Followed by what is wrong with each alternative, of which only one was meant. */
const ALTERNATIVES: ReadonlySet<string> = new Set(["anyOf", "oneOf", "contains", "propertyNames"]);

function toProblems(errors: readonly OutputUnit[]): readonly string[] {
  const problems: string[] = [];
  let around = "";
  for (const [at, { error, instanceLocation, keyword, keywordLocation }] of errors.entries()) {
    // The schema `false` has no place of its own there, but what is before it is where it stands.
    const location = keyword === "false" ? (errors[at - 1]?.keywordLocation ?? "") : keywordLocation;
    if (around !== "" && location.startsWith(`${around}/`)) continue;
    if (WRAPPERS.has(keyword)) continue;
    if (ALTERNATIVES.has(keyword)) around = location;
    const place = formatPath(toPath(instanceLocation));
    const text = (SENTENCES[keyword]?.(error) ?? error).replace(/\.$/, "");
    problems.push(`${place === "" ? "" : `${place}: `}${text}`.slice(0, MAX_PROBLEM_LENGTH));
  }
  return problems;
}

/** In place of sentences of the library that are wrong or say too little. */
const SENTENCES: Readonly<Record<string, (error: string) => string>> = {
  false: () => "is not allowed",
  maxProperties: () => "Instance has too many properties",
  exclusiveMinimum: (error) => error.replace("is less than", "is not greater than"),
};

/** `#/sections/0/title`, as a list. */
function toPath(pointer: string): Path {
  return pointer
    .split("/")
    .slice(1)
    .map((segment) => decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment));
}
