import fc from "fast-check";
import { expect, it } from "vitest";
import { hasDuplicateMembers } from "./verify-card.ts";

it.each([
  ['{"a":1,"a":2}', true],
  ['{"a":1,"b":{"c":1,"c":2}}', true],
  ['[{"a":1},{"a":1,"\\u0061":2}]', true],
  ['{"a":1 , "a" : 2}', true],
  ['{"":1,"":2}', true],
  ['{"a":{"a":{"a":1}}}', false],
  ['{"a":["a","a"],"b":"a"}', false],
  ['[{"a":1},{"a":1}]', false],
  ['{"a":"\\"a\\":1,\\"a\\":2","b":"{\\"a\\":"}', false],
  ['"a"', false],
])("%s: %s", (text, repeated) => {
  expect(hasDuplicateMembers(text)).toBe(repeated);
});

it("is never reported for what JSON.stringify wrote, and always once a member is written again", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (value) => {
      const text = JSON.stringify(value, null, 1);
      expect(hasDuplicateMembers(text)).toBe(false);
      const [name] = Object.keys(JSON.parse(text));
      expect(hasDuplicateMembers(`${text.slice(0, -1)},${JSON.stringify(name)}:0}`)).toBe(true);
    }),
  );
});
