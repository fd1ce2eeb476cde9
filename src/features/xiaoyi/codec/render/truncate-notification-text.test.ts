import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../../../core/model/testing/exploring.ts";
import { truncateNotificationText } from "./notification.ts";

const wide = /[^\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Nd}\p{M}\x20-\x7e\u00a0-\u00ff]/u;

/** What the bar is full of at 1. */
function fill(text: string): number {
  return [...text].reduce((sum, character) => sum + 1 / (wide.test(character) ? 57 : 84), 0);
}

describe("the words of a notification", () => {
  it.each([
    ["84 Latin characters", "a".repeat(84), "a".repeat(84)],
    ["57 Chinese characters", "艺".repeat(57), "艺".repeat(57)],
    ["one Latin character too many", "a".repeat(85), `${"a".repeat(82)}…`],
    ["one Chinese character too many", "艺".repeat(58), `${"艺".repeat(56)}…`],
    ["a mixture", `${"艺".repeat(19)}${"a".repeat(56)}`, `${"艺".repeat(19)}${"a".repeat(56)}`],
    ["a mixture that is too long", `${"艺".repeat(19)}${"a".repeat(57)}`, `${"艺".repeat(19)}${"a".repeat(54)}…`],
    ["lines", "one\r\n\n  two\tthree\n", "one two three"],
    ["nothing but space", " \n\u3000\t ", ""],
    ["a sign of several code points at the edge", `${"艺".repeat(55)}👩‍👩‍👧`, `${"艺".repeat(55)}…`],
    [
      "dots after a word",
      `${"a".repeat(40)} ${"a".repeat(40)} ${"a".repeat(9)}`,
      `${"a".repeat(40)} ${"a".repeat(40)}…`,
    ],
  ])("are cut to what the bar shows: %s", (_, text, shown) => {
    expect(truncateNotificationText(text)).toBe(shown);
  });

  const words = fc.string({ unit: "grapheme", maxLength: 200 });

  it("always fit, and begin as the text does", () => {
    fc.assert(
      fc.property(fc.oneof(words, fc.string({ unit: "binary", maxLength: 200 })), (text) => {
        const shown = truncateNotificationText(text);
        const line = text.replaceAll(/[\p{White_Space}\p{Cc}]+/gu, " ").trim();
        expect(fill(shown)).toBeLessThanOrEqual(1 + 1e-9);
        expect(shown === line || (shown.endsWith("…") && line.startsWith(shown.slice(0, -1)))).toBe(true);
        if (fill(line) <= 1) expect(shown).toBe(line);
        else expect(fill(shown)).toBeLessThan(fill(line));
      }),
      { numRuns: cases(500) },
    );
  });

  it("tear no sign apart", () => {
    fc.assert(
      fc.property(words, (text) => {
        const signs = [...new Intl.Segmenter().segment(text.replaceAll(/[\p{White_Space}\p{Cc}]+/gu, " ").trim())];
        const ends = new Set([0, ...signs.map(({ index, segment }) => index + segment.length)]);
        const shown = truncateNotificationText(text);
        const kept = shown.endsWith("…") ? shown.slice(0, -1) : shown;
        expect(ends.has(kept.length)).toBe(true);
        expect(shown.isWellFormed()).toBe(true);
      }),
      { numRuns: cases(500) },
    );
  });
});
