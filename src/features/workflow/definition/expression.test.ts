import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ExpressionError, parseCondition, parseReference, printCondition } from "./expression.ts";
import type { Condition, Operator } from "./plan.ts";
import { arbitraryReference } from "./testing/arbitraries.ts";

const state = { kind: "reference", path: ["steps", "a", "state"] };
const word = (value: string | number | boolean | null) => ({ kind: "literal", value });

describe("a reference", () => {
  it("is a dotted path", () => {
    expect(parseReference(" steps.提纲.data.items.0 ").path).toEqual(["steps", "提纲", "data", "items", "0"]);
  });

  it.each(["", " ", "a..b", ".a", "a.", "a b", "a[0]", 'a["b"]', "a.${b"])("is not %j", (text) => {
    expect(() => parseReference(text)).toThrow(ExpressionError);
  });

  it("says how items are written", () => {
    expect(() => parseReference("steps.a.data[3].x")).toThrow("the items of a list are written steps.a.data.3");
  });
});

describe("a condition", () => {
  it.each<[string, unknown]>([
    ["${steps.a.state} == completed", { kind: "binary", operator: "==", left: state, right: word("completed") }],
    ["!${steps.a.state}", { kind: "not", operand: state }],
    [
      "${steps.a.state} != 'input required'",
      { kind: "binary", operator: "!=", left: state, right: word("input required") },
    ],
    ["\"it's\" == 'it\\'s \"so\"'", { kind: "binary", operator: "==", left: word("it's"), right: word('it\'s "so"') }],
    ["-1.5e3 < 0", { kind: "binary", operator: "<", left: word(-1500), right: word(0) }],
    ["true", word(true)],
    ["null", word(null)],
    ["完成", word("完成")],
    ["input-required", word("input-required")],
  ])("%s", (text, condition) => expect(parseCondition(text)).toEqual(condition));

  it("binds && closer than ||, and comparisons closer than both", () => {
    expect(printCondition(parseCondition("((a == b) || (c < 1)) && !(d)"))).toBe("(a == b || c < 1) && !d");
    expect(parseCondition("a || b && c == d")).toEqual(parseCondition("a || (b && (c == d))"));
    expect(parseCondition("a && b && c")).toEqual(parseCondition("(a && b) && c"));
  });

  it.each([
    ["", "not the end"],
    ["a ==", "not the end"],
    ["a == b == c", "expected ==, !=, <, >, <=, >=, && or ||, not =="],
    ["(a", "expected ), not the end"],
    ["a b", "not b"],
    ["a = b", "cannot read this: = b"],
    ["${steps.a", "the closing } is missing"],
    ["steps.a.state == completed", 'write ${steps.a.state} for a value, "steps.a.state" for a text'],
    ["'a", "cannot read this: 'a"],
    ["'\\q'", "cannot read the text"],
    ["1.2.3 == 1", "cannot read this"],
    ["process.exit(1)", "write ${process.exit} for a value"],
    [`${"!".repeat(100)}a`, "nested too deeply"],
    [`${"(".repeat(100)}a${")".repeat(100)}`, "nested too deeply"],
    ["a || ".repeat(2_000), "longer than 4096 characters"],
  ])("is not %j", (text, message) => {
    expect(() => parseCondition(text)).toThrow(ExpressionError);
    expect(() => parseCondition(text)).toThrow(message);
  });

  const literal = fc.oneof(
    fc.string(),
    fc.constantFrom("completed", "true", "null", "a.b", "a-b", "完成", "'", '"', "\\"),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.boolean(),
    fc.constant(null),
  );
  const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { maxDepth: 5, depthIdentifier: "condition" },
      literal.map((value): Condition => ({ kind: "literal", value })),
      arbitraryReference,
      tie("condition").map((operand): Condition => ({ kind: "not", operand })),
      fc
        .tuple(
          fc.constantFrom<Operator>("==", "!=", "<", "<=", ">", ">=", "&&", "||"),
          tie("condition"),
          tie("condition"),
        )
        .map(([operator, left, right]): Condition => ({ kind: "binary", operator, left, right })),
    ),
  }));

  it("is read back as it was printed", () => {
    fc.assert(
      fc.property(condition, (one) => {
        const text = printCondition(one);
        fc.pre(text.length <= 4_096);
        expect(parseCondition(text)).toEqual(one);
      }),
    );
  });

  it("is refused with an ExpressionError, whatever the text", () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom("${", "}", "==", "!", "(", ")", "&&", "a", "steps.a", "'", '"', "1"),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          parseCondition(pieces.join(""));
        } catch (error) {
          expect(error).toBeInstanceOf(ExpressionError);
        }
      }),
    );
  });
});
