import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../../core/model/testing/exploring.ts";
import { countCodePoints, lastCodePoints, splitText } from "./frames.ts";

describe("text", () => {
  it("is split between code points", () => {
    expect(splitText("")).toEqual([]);
    expect(splitText("abc", 3)).toEqual(["abc"]);
    expect(splitText("abcd", 3)).toEqual(["abc", "d"]);
    expect(splitText("😀😀😀", 2)).toEqual(["😀😀", "😀"]);
    expect(splitText(`${"a".repeat(3_999)}😀b`)).toEqual([`${"a".repeat(3_999)}😀`, "b"]);
    expect(splitText("茶".repeat(8_001)).map((piece) => piece.length)).toEqual([4_000, 4_000, 1]);
  });

  it("of any kind has an end of any length", () => {
    const texts = fc.string({ unit: fc.constantFrom("a", "茶", "😀", "\ud83d", "\ude00") });
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 5 }), (text, longest) => {
        expect([...lastCodePoints(text, longest)]).toEqual([...text].slice(-longest));
      }),
      { numRuns: cases(2_000) },
    );
  });

  it("of any kind is whole again when its pieces are joined", () => {
    const texts = fc.string({ unit: fc.constantFrom("a", "茶", "😀", "\ud83d", "\ude00", "é") });
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 5 }), (text, longest) => {
        const pieces = splitText(text, longest);
        expect(pieces.join("")).toBe(text);
        expect(countCodePoints(text)).toBe([...text].length);
        for (const [index, piece] of pieces.entries()) {
          const length = [...piece].length;
          expect(length).toBeGreaterThan(0);
          if (index < pieces.length - 1) expect(length).toBe(longest);
          else expect(length).toBeLessThanOrEqual(longest);
        }
        expect(pieces.reduce((sum, piece) => sum + [...piece].length, 0)).toBe([...text].length);
      }),
      { numRuns: cases(2_000) },
    );
  });
});
