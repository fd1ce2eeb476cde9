import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { block, displayWidth, field, quoteForShell, table, truncateToWidth } from "./text.ts";

describe("text form", () => {
  it("[A2ACLI_OUT_005] prints fields on one line and closes blocks with a blank one", () => {
    expect(field("State", "TASK_STATE_WORKING")).toBe("State: TASK_STATE_WORKING\n");
    expect(field("Artifact", "two\nlines")).toBe("Artifact: two\\nlines\n");
    expect(block("Text", "hello")).toBe("Text:\n  hello\n\n");
    expect(block("Text", "x\n\nState: DONE\n")).toBe("Text:\n  x\n  \n  State: DONE\n\n");
  });

  it("quotes for a shell only what needs it", () => {
    expect(quoteForShell("http://127.0.0.1:4000/agents/echo")).toBe("http://127.0.0.1:4000/agents/echo");
    expect(quoteForShell("it's")).toBe("'it'\\''s'");
    expect(quoteForShell("$(rm x)")).toBe("'$(rm x)'");
  });

  it("aligns the columns of a table", () => {
    expect(
      table([
        ["ok", "node", "20"],
        ["failed", "x", "y"],
      ]),
    ).toBe("ok      node  20\nfailed  x     y\n");
    expect(
      table([
        ["茶", "a"],
        ["tea", "b"],
      ]),
    ).toBe("茶   a\ntea  b\n");
  });

  it.each([
    ["tea", 3],
    ["茶のこと", 8],
    ["차,お茶!", 8],
    ["cafe\u0301", 4],
    ["🎉", 2],
    ["❤\ufe0f", 2],
    ["🇨🇳", 4],
    ["…·—", 3],
  ])("takes as many columns as a terminal gives %j", (line, columns) => {
    expect(displayWidth(line)).toBe(columns);
  });

  it("cuts a line to what fits, and no character in two", () => {
    expect(truncateToWidth("茶的历史", 8)).toBe("茶的历史");
    expect(truncateToWidth("茶的历史", 7)).toBe("茶的历…");
    expect(truncateToWidth("茶的历史", 6)).toBe("茶的…");
    expect(truncateToWidth("cafe\u0301s", 5)).toBe("cafe\u0301s");
    expect(truncateToWidth("a👩‍👩‍👧b", 4)).toBe("a…");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (line, columns) => {
        expect(displayWidth(truncateToWidth(line, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });
});
