import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Line, splitLines } from "./output.ts";

async function split(chunks: readonly string[], longest?: number): Promise<Line[]> {
  async function* source() {
    yield* chunks;
  }
  const lines: Line[] = [];
  for await (const line of splitLines(source(), longest)) lines.push(line);
  return lines;
}

describe("linesOf", () => {
  it("keeps newlines and a last line without one", async () => {
    expect(await split(["a\nb", "c\n\nd"])).toEqual([
      { text: "a\n", whole: true },
      { text: "bc\n", whole: true },
      { text: "\n", whole: true },
      { text: "d", whole: true },
    ]);
  });

  it("hands on an overlong line in pieces", async () => {
    expect(await split(["abc", "def", "g\nh"], 4)).toEqual([
      { text: "abcdef", whole: false },
      { text: "g\n", whole: false },
      { text: "h", whole: true },
    ]);
  });

  it("joins the lines of a flood, but none that may be an event", async () => {
    const lines = await split([`${"y\n".repeat(1_000)}{"status":"working"}\n${"n\n".repeat(500)}`, "last\n"]);
    expect(lines.length).toBeLessThan(100);
    expect(lines.slice(-4)).toEqual([
      { text: "y\n".repeat(1_000 - (lines.length - 4)), whole: false },
      { text: '{"status":"working"}\n', whole: true },
      { text: "n\n".repeat(500), whole: false },
      { text: "last\n", whole: true },
    ]);
  });

  it("loses nothing, however the text arrives", async () => {
    const chunk = fc.string({ unit: fc.constantFrom("a", "\n", "é", "\r") });
    await fc.assert(
      fc.asyncProperty(fc.array(chunk), fc.integer({ min: 1, max: 8 }), async (chunks, longest) => {
        const lines = await split(chunks, longest);
        expect(lines.map((line) => line.text).join("")).toBe(chunks.join(""));
        for (const { text } of lines) expect(text.slice(0, -1)).not.toContain("\n");
      }),
    );
  });
});
