import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { JsonObject, JsonValue } from "../../../core/model/json.ts";
import { checkOutput, checkSchema } from "./output-schema.ts";

const OUTLINE = {
  type: "object",
  required: ["title", "sections"],
  properties: {
    title: { type: "string", minLength: 1 },
    sections: { type: "array", minItems: 1, items: { $ref: "#/$defs/section" } },
  },
  additionalProperties: false,
  $defs: {
    section: {
      type: "object",
      required: ["title"],
      properties: { title: { type: "string" }, level: { type: "integer", minimum: 1, maximum: 6 } },
    },
  },
};

const TOO_LARGE = "cannot be checked, it is too large or nested too deeply";
const TOO_SLOW = "cannot be checked, it takes too long";
const MALFORMED = "cannot be checked: URIError: URI malformed";
const WRONG = '[0]: Instance type "number" is invalid. Expected "string"';

function nest(depth: number, key?: string): JsonObject {
  let value: JsonValue = key === undefined ? [] : {};
  for (let level = 1; level < depth; level++) value = key === undefined ? [value] : { [key]: value };
  return value as JsonObject;
}

describe("what a step returns", () => {
  it("keeps no one else waiting, however long it takes to check", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    const schema = { items: { pattern: "^(a+)+$" } };
    const slow = Array.from({ length: 3 }, () => checkOutput(schema, [`${"a".repeat(40)}!`]));
    expect(await Promise.all(slow)).toEqual([[TOO_SLOW], [TOO_SLOW], [TOO_SLOW]]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(20);
    expect(await checkOutput(schema, ["aaa"])).toEqual([]);
  });

  it("fits its schema", async () => {
    const value = { title: "Bees", sections: [{ title: "Hives", level: 1, more: true }] };
    expect(await checkOutput(OUTLINE, value)).toEqual([]);
  });

  it("is refused with the path of each problem", async () => {
    const value = { sections: [{ title: "Hives", level: 1.5 }, { level: 9 }, "x"], "ex/tra 1": 1 };
    expect(await checkOutput(OUTLINE, value)).toEqual([
      'Instance does not have required property "title"',
      'sections[0].level: Instance type "number" is invalid. Expected "integer"',
      'sections[1]: Instance does not have required property "title"',
      "sections[1].level: 9 is greater than 6",
      'sections[2]: Instance type "string" is invalid. Expected "object"',
      "ex/tra 1: is not allowed",
    ]);
    expect(await checkOutput(OUTLINE, undefined)).toEqual(["the step returned no data"]);
    expect(await checkOutput(OUTLINE, "Bees")).toEqual(['Instance type "string" is invalid. Expected "object"']);
  });

  it("is refused once where none of several alternatives fits", async () => {
    const schema = { items: { anyOf: [{ type: "string" }, { type: "object", additionalProperties: false }] } };
    expect(await checkOutput(schema, [1, { a: 1 }])).toEqual([
      "[0]: Instance does not match any subschemas",
      "[1]: Instance does not match any subschemas",
    ]);
  });

  it.each<[JsonObject, JsonValue, JsonValue]>([
    [{ type: ["string", "null"] }, null, 1],
    [{ enum: ["a", { b: [1, 2], c: 1 }] }, { c: 1, b: [1, 2] }, { b: [2, 1], c: 1 }],
    [{ const: 0 }, 0, false],
    [{ required: ["a"] }, "not a map", {}],
    [{ required: ["toString"] }, { toString: 1 }, {}],
    [{ maxLength: 1 }, "💡", "ab"],
    [{ pattern: "^\\p{L}+$" }, "提纲", "1"],
    [{ exclusiveMinimum: 0, exclusiveMaximum: 2 }, 1, 2],
    [{ multipleOf: 3 }, 9, 10],
    [
      { uniqueItems: true },
      [1, "1", [1]],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
    [{ minProperties: 1, maxProperties: 1 }, { a: 1 }, {}],
    [{ additionalProperties: { type: "number" } }, { a: 1 }, { a: "1" }],
    [{ anyOf: [{ type: "string" }, { minimum: 3 }] }, 3, 2],
    [{ oneOf: [{ type: "integer" }, { minimum: 3 }] }, 2, 3],
    [{ allOf: [{ type: "integer" }, { minimum: 3 }] }, 3, 3.5],
    [{ not: { type: "string" } }, 1, "a"],
    [{ items: false }, [], [1]],
    [{ type: "object", properties: { next: { $ref: "#" } } }, { next: { next: {} } }, { next: { next: 1 } }],
    [{ $id: "https://example.com/a", $ref: "#/$defs/提纲", $defs: { 提纲: { type: "null" } } }, null, 1],
    [{ prefixItems: [{ type: "string" }], items: { type: "number" } }, ["a", 1], ["a", "b"]],
    [{ contains: { type: "string" }, minContains: 2 }, ["a", 1, "b"], ["a", 1]],
    [{ patternProperties: { "^n": { type: "number" } } }, { n1: 1, x: "" }, { n1: "" }],
    [{ propertyNames: { maxLength: 2 } }, { ab: 1 }, { abc: 1 }],
    [{ dependentRequired: { a: ["b"] } }, { a: 1, b: 1 }, { a: 1 }],
    [JSON.parse('{ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "type": "number" } }'), 1, ""],
    [{ allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, { a: 1 }, { b: 1 }],
    [{ format: "date" }, "2026-02-28", "2026-02-30"],
    [{ type: "string", format: "anything" }, "x", null],
  ])("%j", async (schema, good, bad) => {
    expect(checkSchema(schema)).toEqual([]);
    const before = JSON.stringify(schema);
    expect(await checkOutput(schema, good)).toEqual([]);
    expect(await checkOutput(schema, bad)).not.toEqual([]);
    expect(JSON.stringify(schema)).toBe(before);
  });

  it.each<[string, JsonObject, JsonValue, readonly string[]]>([
    ["names ten problems at most", { items: { type: "string" } }, Array(1_000).fill(1), Array(10).fill(WRONG)],
    ["names the first of many", { items: { type: "string" } }, Array(20_000).fill(1), [WRONG]],
    ["does not read a huge result", {}, Array(200_001).fill(1), [TOO_LARGE]],
    ["does not read a deep result", {}, nest(201), [TOO_LARGE]],
    ["ends where a schema is its own", { $ref: "#" }, 1, [TOO_LARGE]],
    ["ends where a schema is its own twice", { anyOf: [{ $ref: "#" }, { $ref: "#" }] }, 1, [TOO_LARGE]],
    ["ends a pattern that backtracks", { pattern: "^(a+)+$" }, `${"a".repeat(60)}!`, [TOO_SLOW]],
    [
      "ends a schema that branches at every level",
      { anyOf: [{ items: { $ref: "#" } }, { items: { $ref: "#" }, minItems: 1 }], not: { type: "number" } },
      nest(100),
      [TOO_SLOW],
    ],
    ["shortens names", { additionalProperties: false }, { ["x".repeat(1_000)]: 1 }, ["x".repeat(300)]],
    ["survives names that are not Unicode", { properties: { "\ud800": false } }, { "\ud800": 1 }, [MALFORMED]],
  ])("is checked within bounds, which %s", async (_name, schema, value, problems) => {
    const shown = (await checkOutput(schema, value)).map((problem) => problem.replace(/^\[\d+\]/, "[0]"));
    expect(shown).toEqual(problems);
  });

  it("is checked as zod checks it, where both know the keywords", async () => {
    const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3, depthIdentifier: "schema" },
        fc.constantFrom<JsonObject>(
          { type: "string" },
          { type: "number", minimum: 0 },
          { type: "boolean" },
          { type: "null" },
          { type: "string", maxLength: 3 },
          { enum: ["a", 1, true] },
        ),
        tie("schema").map((items): JsonObject => ({ type: "array", items, maxItems: 3 })),
        fc.tuple(tie("schema"), tie("schema"), fc.boolean()).map(
          ([a, b, open]): JsonObject => ({
            type: "object",
            properties: { a, b },
            required: ["a"],
            additionalProperties: open,
          }),
        ),
        fc.tuple(tie("schema"), tie("schema")).map((anyOf): JsonObject => ({ anyOf })),
      ),
    }));
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3, depthIdentifier: "schema" },
        fc.constantFrom<JsonValue>("a", "abcd", 1, -1, true, null),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(schema, value, async (rule, data) => {
        const expected = z.fromJSONSchema(rule as Parameters<typeof z.fromJSONSchema>[0]).safeParse(data).success;
        expect((await checkOutput(rule, data)).length === 0).toBe(expected);
      }),
    );
  });
});

describe("a schema", () => {
  it.each<[JsonObject, string]>([
    [
      { type: "strnig" },
      'type: must be one of object, array, string, number, integer, boolean, null; did you mean "string"?',
    ],
    [{ $dynamicRef: "#a" }, "$dynamicRef: this keyword is not supported"],
    [{ items: { $id: "https://example.com" } }, 'items.$id: this keyword is not supported; did you mean "if"?'],
    [{ proprties: {} }, 'proprties: this keyword is not supported; did you mean "properties"?'],
    [{ properties: { a: 3 } }, "properties.a: must be a JSON Schema"],
    [{ anyOf: [{ minimum: "3" }] }, "anyOf.0.minimum: must be a number, not text"],
    [{ pattern: "(" }, "pattern: must be a regular expression"],
    [{ $ref: "https://example.com/schema" }, "$ref: must be # or #/$defs/NAME of this schema"],
    [{ $ref: "#/$defs/gone" }, "$ref: must be # or #/$defs/NAME of this schema"],
    [{ required: "a" }, "required: must be a list of names"],
    [{ minItems: -1 }, "minItems: must be 0 or more"],
    [{ multipleOf: 0 }, "multipleOf: must be more than 0"],
    [{ patternProperties: { "(": {} } }, "patternProperties.(: must be a regular expression"],
    [{ items: [{}] }, "items: must be a JSON Schema"],
    [nest(201, "not"), ": is too large or nested too deeply"],
  ])("is refused: %j", (schema, problem) => {
    expect(checkSchema(schema).map(({ path, message }) => `${path.map(String).join(".")}: ${message}`)).toEqual([
      problem,
    ]);
  });
});
