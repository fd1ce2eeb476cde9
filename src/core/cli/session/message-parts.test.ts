import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { extensionOf, mediaTypeOfName } from "../../model/media-types.ts";
import { readParts } from "./message-parts.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-parts-"));
  writeFileSync(join(folder, "note.md"), "# hi");
  writeFileSync(join(folder, "data.json"), '{"n":1}');
});
afterAll(() => rmSync(folder, { recursive: true }));

const piped = (text: string) => ({ isTerminal: false, read: async () => Buffer.from(text) });
const terminal = { isTerminal: true, read: async () => Buffer.from("must not be read") };

describe("message parts", () => {
  it("keep the order of their flags after the words", async () => {
    const parts = await readParts(
      ["two", "words"],
      [
        { kind: "file", value: join(folder, "note.md") },
        { kind: "text", value: "then", mediaType: "text/html" },
        { kind: "data", value: join(folder, "data.json") },
        { kind: "file", value: "https://e.example/pic%20one.png?x=1" },
      ],
      terminal,
    );
    expect(parts).toEqual([
      { text: "two words" },
      { raw: Buffer.from("# hi").toString("base64"), filename: "note.md", mediaType: "text/markdown" },
      { text: "then", mediaType: "text/html" },
      { data: { n: 1 }, mediaType: "application/json" },
      { url: "https://e.example/pic%20one.png?x=1", filename: "pic one.png", mediaType: "image/png" },
    ]);
  });

  it("[A2ACLI_SEND_005] take a given media type over the one the name suggests", async () => {
    const parts = await readParts(
      [],
      [{ kind: "file", value: join(folder, "note.md"), mediaType: "text/plain" }],
      terminal,
    );
    expect(parts).toMatchObject([{ mediaType: "text/plain" }]);
  });

  it("[A2ACLI_SEND_006] come from standard input where that is meant", async () => {
    expect(await readParts([], [], piped("from a pipe\n"))).toEqual([{ text: "from a pipe" }]);
    expect(await readParts(["-"], [], piped("dash"))).toEqual([{ text: "dash" }]);
    expect(await readParts([], [{ kind: "data", value: "-" }], piped("[1]"))).toMatchObject([{ data: [1] }]);
    expect(await readParts([], [{ kind: "data", value: '{"in":"line"}' }], terminal)).toMatchObject([
      { data: { in: "line" } },
    ]);
  });

  it.each([
    [[], [], terminal, "The message is missing"],
    [[], [], piped(""), "The message is missing"],
    [["-"], [{ kind: "data" as const, value: "-" }], piped("x"), "only once"],
    [[], [{ kind: "data" as const, value: "-" }], piped("{"), "is not JSON"],
    [[], [{ kind: "file" as const, value: "no-such-file" }], terminal, "ENOENT"],
  ])("are refused as usage errors: %j %j", async (words, flags, input, reason) => {
    await expect(readParts(words, flags, input)).rejects.toMatchObject({
      code: "A2ACLI_ERR_USAGE",
      message: expect.stringContaining(reason),
    });
  });

  it("know types by names and names by types", () => {
    expect([mediaTypeOfName("A.PNG"), mediaTypeOfName("x.unknown")]).toEqual(["image/png", undefined]);
    expect([extensionOf("text/plain; charset=utf-8"), extensionOf("x/y")]).toEqual([".txt", undefined]);
  });
});
