import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readContent, toRichText } from "./content.ts";

const anything = fc.oneof(fc.jsonValue(), fc.constantFrom("at", "text", "img", "@_user_1", "@_all"));
const keys = fc.constantFrom("text", "title", "content", "tag", "user_id", "image_key", "file_key", "file_name");
const element = fc.dictionary(keys, anything);
const json = fc.record(
  { text: anything, title: anything, content: fc.array(fc.array(element)), file_key: anything },
  { requiredKeys: [] },
);

describe("contents of Feishu messages", () => {
  it("are read without an exception, whatever they are", () => {
    const type = fc.constantFrom("text", "post", "image", "file", "audio", "media", "sticker", "");
    const content = fc.oneof(
      fc.string(),
      json.map((one) => JSON.stringify(one)),
    );
    fc.assert(
      fc.property(type, content, (kind, text) => {
        const read = readContent(kind, text, [{ key: "@_user_1", name: "Ann" }, {}]);
        expect(typeof read.text).toBe("string");
        for (const { key, name } of read.files) expect([typeof key, typeof name]).toEqual(["string", "string"]);
      }),
    );
  });

  it("carry any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const { zh_cn } = JSON.parse(toRichText(text, [])) as { zh_cn: object };
        expect(readContent("post", JSON.stringify(zh_cn), []).text).toBe(text);
      }),
    );
  });
});
