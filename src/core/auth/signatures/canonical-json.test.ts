import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../model/json.ts";
import { CanonicalJsonError, canonicalJson } from "./sign-card.ts";

describe("canonical JSON", () => {
  it.each<[what: string, given: string, canonical: string]>([
    ["no white space", ' { "a" : [ 1 , 2 ] } ', '{"a":[1,2]}'],
    ["literals", "[true,false,null]", "[true,false,null]"],
    ["empty structures", '{"a":{},"b":[]}', '{"a":{},"b":[]}'],
    [
      "keys sorted at every level",
      '{"b":{"z":1,"y":2},"a":[{"d":1,"c":2}]}',
      '{"a":[{"c":2,"d":1}],"b":{"y":2,"z":1}}',
    ],
    ["the order of arrays kept", "[3,1,2]", "[3,1,2]"],
    ["keys that look like numbers", '{"10":1,"9":2,"1":3}', '{"1":3,"10":1,"9":2}'],
    ["an empty key", '{"b":1,"":2}', '{"":2,"b":1}'],
    ["upper case before lower case", '{"b":1,"B":2,"a":3,"A":4}', '{"A":4,"B":2,"a":3,"b":1}'],
    ["UTF-16 order: an emoji before U+FB33", '{"\\ufb33":1,"\\ud83d\\ude02":2}', '{"\u{1f602}":2,"\ufb33":1}'],
    [
      "the order of RFC 8785 §3.2.3",
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Dalet","1":"One","\\ud83d\\ude00":"Smiley","\\u0080":"Control","\\u00f6":"Umlaut"}',
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Umlaut","€":"Euro Sign","\u{1f600}":"Smiley","\ufb33":"Dalet"}',
    ],
    ["the short escapes", '"\\u0008\\u0009\\u000a\\u000c\\u000d\\"\\\\"', '"\\b\\t\\n\\f\\r\\"\\\\"'],
    ["other controls in lower case", '"\\u0000\\u001F\\u000b"', '"\\u0000\\u001f\\u000b"'],
    ["delete and what follows it literally", '"\\u007f\\u0080\\u2028\\u2029"', '"\u007f\u0080\u2028\u2029"'],
    ["a slash without an escape", '"\\/"', '"/"'],
    ["other letters literally", '"\\u4e2d\\u6587 \\u00e9"', '"中文 é"'],
    ["letters not composed", '"e\\u0301"', '"e\u0301"'],
    ["an escaped pair as one letter", '"\\ud83d\\ude02"', '"\u{1f602}"'],
    ["negative zero", "-0", "0"],
    ["negative zero with a fraction", "-0.0", "0"],
    ["a whole number with a fraction", "1.0", "1"],
    ["an exponent that is none", "1e2", "100"],
    ["a large number", "1e21", "1e+21"],
    ["one below it", "1e20", "100000000000000000000"],
    ["a small number", "0.000001", "0.000001"],
    ["one below it", "0.0000001", "1e-7"],
    ["the shortest form", "333333333.33333329", "333333333.3333333"],
    ["the largest", "1.7976931348623157e308", "1.7976931348623157e+308"],
    ["the smallest", "5e-324", "5e-324"],
    ["the largest that is exact", "9007199254740993", "9007199254740992"],
    ["RFC 8785 §3.2.2", "[4.50,2e-3,0.000000000000000000000000001]", "[4.5,0.002,1e-27]"],
  ])("[CARD-SIGN-001] %s", (_, given, canonical) => {
    expect(canonicalJson(JSON.parse(given))).toBe(canonical);
  });

  it("leaves out members that are undefined", () => {
    expect(canonicalJson({ c: undefined, b: { d: undefined }, a: [{ e: undefined, f: 1 }] })).toBe(
      '{"a":[{"f":1}],"b":{}}',
    );
  });

  it.each<[string, unknown]>([
    ["half a letter", "\ud83d"],
    ["the other half", "\ude02"],
    ["halves in the wrong order", "\ude02\ud83d"],
    ["half a letter in a key", { "\ud83d": 1 }],
    ["infinity", Number.POSITIVE_INFINITY],
    ["a number too large for one", JSON.parse("1e400")],
    ["no number", Number.NaN],
    ["undefined", undefined],
    ["undefined in an array", [undefined]],
    ["a big integer", 1n],
    ["a function", () => 1],
  ])("%s has none", (_, value) => {
    expect(() => canonicalJson(value as JsonValue)).toThrow(CanonicalJsonError);
  });

  const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;

  it("means the same, is the same twice, and does not depend on the order of members", () => {
    fc.assert(
      fc.property(json, (value) => {
        const canonical = canonicalJson(JSON.parse(JSON.stringify(value)));
        expect(JSON.parse(canonical)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(canonical))).toBe(canonical);
        expect(canonicalJson(reversed(JSON.parse(canonical)))).toBe(canonical);
      }),
    );
  });
});

function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, member === undefined ? undefined : reversed(member)]),
  );
}
