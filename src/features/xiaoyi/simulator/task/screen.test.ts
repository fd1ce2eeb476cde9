import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeResponse, type StatusUpdate, type Update } from "./decode-response.ts";
import { type Profile, type Screen, ScreenRenderer } from "./screen.ts";

type Piece = readonly [artifactId: string, append: boolean, text: string, final?: boolean];

const update = ([artifactId, append, text, final = false]: Piece, kind: "reasoningText" | "text" = "text"): Update => ({
  kind: "artifact-update",
  taskId: undefined,
  final,
  append,
  lastChunk: true,
  artifactId,
  parts: [{ kind, text }],
});

function painted(profile: Profile, ...updates: readonly Update[]): Screen {
  const painter = new ScreenRenderer(profile);
  for (const one of updates) painter.apply(one);
  return painter.screen("working", undefined);
}

const textOn = (profile: Profile, ...pieces: readonly Piece[]) =>
  painted(profile, ...pieces.map((p) => update(p))).text;

const statusText = (text: string): StatusUpdate => ({
  kind: "status-update",
  taskId: undefined,
  final: false,
  state: "working",
  text,
});

describe("text by the book", () => {
  test.each<[string, string, ...Piece[]]>([
    ["grows where it is appended to", "ab", ["1", false, "a"], ["1", true, "b"]],
    ["is replaced where it is not", "b", ["1", false, "a"], ["1", false, "b"]],
    ["has a paragraph for every artifact", "a\n\nbc", ["1", false, "a"], ["2", false, "b"], ["2", true, "c"]],
  ])("%s", (_what, text, ...pieces) => {
    expect(textOn("spec", ...pieces)).toBe(text);
  });
});

describe("text on the device", () => {
  test.each<[string, string, ...Piece[]]>([
    ["is replaced by a piece of another artifact", "b", ["1", false, "a"], ["2", false, "b"]],
    ["is overwritten by what should have been added to it", "b", ["1", false, "a"], ["1", true, "b"]],
    ["grows with new artifacts only", "abc", ["1", false, "a"], ["2", true, "b"], ["3", true, "c"]],
    ["loses all but the last chunk of one artifact", "ac", ["1", false, "a"], ["2", true, "b"], ["2", true, "c"]],
    ["is left alone by an empty end that appends", "a", ["1", false, "a"], ["2", true, "", true]],
    ["is wiped out by one that does not", "", ["1", false, "a"], ["2", false, "", true]],
  ])("%s", (_what, text, ...pieces) => {
    expect(textOn("phone-2026-04", ...pieces)).toBe(text);
  });

  test("is whole however it is cut, if it is sent as devices want it", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (chunks) => {
        const cumulative = chunks.map((_, index): Piece => [`${index}`, false, chunks.slice(0, index + 1).join("")]);
        expect(textOn("phone-2026-04", ...cumulative)).toBe(chunks.join(""));
        const added = chunks.map((chunk, index): Piece => [`${index}`, true, chunk]);
        expect(textOn("phone-2026-04", ...added)).toBe(chunks.join(""));
        const appended = chunks.map((chunk): Piece => ["1", true, chunk]);
        expect(textOn("spec", ...appended)).toBe(chunks.join(""));
      }),
    );
  });
});

describe("the rest of the screen", () => {
  test("shows text before the end only by the book", () => {
    expect(painted("spec", update(["1", false, "a"])).painted).toBe(true);
    expect(painted("phone-2026-04", update(["1", false, "a"])).painted).toBe(false);
    expect(painted("phone-2026-04", update(["1", false, "a", true])).painted).toBe(true);
    const painter = new ScreenRenderer("phone-2026-04");
    painter.apply(update(["1", false, "a"]));
    painter.reenter();
    expect(painter.screen("working", undefined).painted).toBe(true);
  });

  test("shows a question", () => {
    const asks: Update = { ...statusText(""), state: "input-required" };
    expect(painted("phone-2026-04", update(["1", false, "Really?"]), asks).painted).toBe(true);
  });

  test("keeps status texts only on the device", () => {
    const updates = [statusText("Searching"), statusText(""), statusText("Reading")];
    expect(painted("phone-2026-04", ...updates)).toMatchObject({ notes: ["Searching", "Reading"], statusBar: "" });
    expect(painted("spec", ...updates)).toMatchObject({ notes: [], statusBar: "Reading" });
    expect(painted("spec", ...updates, update(["1", false, "a", true])).statusBar).toBe("");
  });

  test("moves dots while the agent thinks without words, and folds its thoughts when it answers", () => {
    const dots = update(["t", false, ""], "reasoningText");
    expect(painted("phone-2026-04", dots)).toMatchObject({ dots: true, thinking: undefined });
    const thought = update(["t", false, "Well"], "reasoningText");
    expect(painted("phone-2026-04", dots, thought)).toMatchObject({
      dots: false,
      thinking: { text: "Well", folded: false },
    });
    const answered = painted("phone-2026-04", thought, update(["a", false, "42"]));
    expect(answered).toMatchObject({ text: "42", thinking: { text: "Well", folded: true } });
    expect(painted("phone-2026-04", dots, update(["a", false, "42"])).dots).toBe(false);
  });

  test("has cards and files", () => {
    const parts = [
      { kind: "data", data: { chipsInfo: { displayChips: { chipsList: [] } } } },
      { kind: "data", data: { fileInfo: [{ fileName: "b.pdf", fileType: "application/pdf", fileId: "f" }] } },
      { kind: "file", file: { name: "a.txt", mimeType: "text/plain", fileId: "f" } },
      { kind: "file", file: { name: "c.txt", mimeType: "text/plain", uri: "https://example.com/c.txt" } },
    ];
    const result = {
      kind: "artifact-update",
      append: true,
      lastChunk: false,
      final: false,
      artifact: { artifactId: "1", parts },
    };
    const response = decodeResponse({ jsonrpc: "2.0", id: 1, result });
    if (response.kind !== "update") throw new Error("no update");
    const screen = painted("phone-2026-04", response.update);
    expect(screen.data).toHaveLength(2);
    expect(screen.files.map(({ name, shown }) => [name, shown])).toEqual([
      ["b.pdf", true],
      ["a.txt", true],
      ["c.txt", false],
    ]);
  });
});
