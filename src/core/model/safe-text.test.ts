import fc from "fast-check";
import { expect, it } from "vitest";
import { safeJson, safeLine, safeText } from "./safe-text.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const anyText = fc.string({ unit: "binary" });

it("[A2ACLI_OUT_005] shows control sequences instead of obeying them", () => {
  expect(safeText("\u001b[31mred\u0007\r\n")).toBe("\\x1b[31mred\\x07\n");
  expect(safeText("a\u202eb\u009bc\u2028d\u{e0041}")).toBe("a\\u202eb\\x9bc\\u2028d\\u{e0041}");
  fc.assert(fc.property(anyText, (text) => !UNSAFE.test(safeText(text))));
  fc.assert(fc.property(anyText, (text) => !safeLine(text).includes("\n")));
});

it("leaves ordinary text as it is", () => {
  const text = "Grüße,\t世界 🎉 👩‍💻 نمی‌خواهم\n";
  expect(safeText(text)).toBe(text);
});

it("keeps the value of JSON", () => {
  expect(safeJson({ a: "\u009b\u202e\u{e0041}" })).toBe('{"a":"\\u009b\\u202e\\udb40\\udc41"}');
  fc.assert(
    fc.property(fc.dictionary(anyText, anyText), (value) => {
      const text = safeJson(value, 2);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(text).not.toMatch(UNSAFE);
    }),
  );
});
