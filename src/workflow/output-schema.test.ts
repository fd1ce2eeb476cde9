import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { JsonObject, JsonValue } from "../model/json.ts";
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

describe("what a step returns", () => {
  it("fits its schema", () => {
    expect(checkOutput(OUTLINE, { title: "Bees", sections: [{ title: "Hives", level: 1, more: true }] })).toEqual([]);
  });

  it("is refused with the path of each problem", () => {
    const value = { sections: [{ title: "Hives", level: 1.5 }, { level: 9 }, "x"], extra: 1 };
    expect(checkOutput(OUTLINE, value)).toEqual([
      "title is required",
      "sections[0].level: must be integer, not 1.5",
      "sections[1]: title is required",
      "sections[1].level: must be 6 or less",
      "sections[2]: must be a map, not text",
      "extra: is not allowed",
    ]);
    expect(checkOutput(OUTLINE, undefined)).toEqual(["the step returned no data"]);
    expect(checkOutput(OUTLINE, "Bees")).toEqual(["must be a map, not text"]);
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
  ])("%j", (schema, good, bad) => {
    expect(checkSchema(schema)).toEqual([]);
    expect(checkOutput(schema, good)).toEqual([]);
    expect(checkOutput(schema, bad)).not.toEqual([]);
  });

  it("is checked within bounds", () => {
    const wrong = Array.from({ length: 1_000 }, () => 1);
    expect(checkOutput({ items: { type: "string" } }, wrong)).toHaveLength(10);
    expect(checkOutput({ $ref: "#" }, 1)).toEqual(["cannot be checked, it is too large or nested too deeply"]);
    const twice = { anyOf: [{ $ref: "#" }, { $ref: "#" }] };
    expect(checkOutput(twice, 1)).toEqual(["fits none of anyOf"]);
  });

  it("is checked as zod checks it, where both know the keywords", () => {
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
    fc.assert(
      fc.property(schema, value, (rule, data) => {
        const expected = z.fromJSONSchema(rule as Parameters<typeof z.fromJSONSchema>[0]).safeParse(data).success;
        expect(checkOutput(rule, data).length === 0).toBe(expected);
      }),
    );
  });
});

describe("a schema", () => {
  it.each<[JsonObject, string]>([
    [{ type: "strnig" }, "type: must be one of object, array, string, number, integer, boolean, null"],
    [{ dependentRequired: {} }, "dependentRequired: this keyword is not supported"],
    [{ proprties: {} }, 'proprties: this keyword is not supported; did you mean "properties"?'],
    [{ properties: { a: 3 } }, "properties.a: must be a JSON Schema"],
    [{ anyOf: [{ minimum: "3" }] }, "anyOf.0.minimum: must be a number"],
    [{ pattern: "(" }, "pattern: must be a regular expression"],
    [{ $ref: "https://example.com/schema" }, "$ref: must be # or #/$defs/NAME of this schema"],
    [{ $ref: "#/$defs/gone" }, "$ref: must be # or #/$defs/NAME of this schema"],
    [{ required: "a" }, "required: must be a list of names"],
    [{ minItems: -1 }, "minItems: must be a whole number of 0 or more"],
  ])("is refused: %j", (schema, problem) => {
    expect(checkSchema(schema).map(({ path, message }) => `${path.map(String).join(".")}: ${message}`)).toEqual([
      problem,
    ]);
  });
});
