import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_MAX_DEPTH, decodeUtf8, JsonParseError, parseJson } from "./parse-json.ts";

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function reasonOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof JsonParseError) return error.reason;
    throw error;
  }
  return "accepted";
}

/** Values with strings full of what a careless depth scan stumbles over. */
const trickyJson = fc.jsonValue({ maxDepth: 8, stringUnit: fc.constantFrom("[", "{", "]", "}", '"', "\\", "a", "é") });

describe("parseJson", () => {
  it("agrees with JSON.parse on shallow values", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), trickyJson), fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        fc.pre(!text.includes("__proto__"));
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("accepts exactly the configured depth", () => {
    fc.assert(
      fc.property(trickyJson, fc.nat({ max: 10 }), (value, maxDepth) => {
        const verdict = reasonOf(() => parseJson(JSON.stringify(value), { maxDepth }));
        expect(verdict).toBe(depthOf(value) > maxDepth ? "depth" : "accepted");
      }),
    );
  });

  it("accepts exactly as many values as configured, where an empty object or list counts twice", () => {
    const count = (value: unknown): number => {
      if (typeof value !== "object" || value === null) return 1;
      const children = Object.values(value);
      return 1 + (children.length === 0 ? 1 : children.reduce((sum: number, child) => sum + count(child), 0));
    };
    fc.assert(
      fc.property(trickyJson, fc.integer({ min: 1, max: 30 }), (value, maxValues) => {
        const text = JSON.stringify(value);
        // A text this short cannot hold more.
        fc.pre(text.length > 2 * maxValues);
        const verdict = reasonOf(() => parseJson(text, { maxValues }));
        expect(verdict).toBe(count(value) > maxValues ? "values" : "accepted");
      }),
    );
  });

  it("accepts the default depth and refuses one more", () => {
    const nested = (depth: number) => '{"a":['.repeat(depth / 2) + "[]".repeat(depth % 2) + "]}".repeat(depth / 2);
    expect(reasonOf(() => parseJson(nested(DEFAULT_MAX_DEPTH)))).toBe("accepted");
    expect(reasonOf(() => parseJson(nested(DEFAULT_MAX_DEPTH + 1)))).toBe("depth");
    expect(reasonOf(() => parseJson("[".repeat(65) + "]".repeat(65)))).toBe("depth");
  });

  it("accepts many shallow siblings", () => {
    const wide = JSON.stringify(Array.from({ length: 500 }, () => ({ list: ["]]]", '\\"[[['] })));
    expect(parseJson(wide)).toEqual(JSON.parse(wide));
  });

  it("refuses hostile nesting without exhausting the stack", () => {
    expect(reasonOf(() => parseJson("[".repeat(1_000_000)))).toBe("depth");
  });

  it("reports anything else that is not JSON as a syntax error", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(reasonOf(() => parseJson(text))).toBe(valid ? "accepted" : "syntax");
      }),
    );
    const unclosed = `${"[]".repeat(100)}"${"[".repeat(100)}`;
    expect(reasonOf(() => parseJson(unclosed))).toBe("syntax");
  });

  it.each(["1e400", "-1E+309", "1e00400", `1${"0".repeat(309)}`, `-${"9".repeat(250)}.5e99`])(
    "refuses the number %s wherever it is, which a double cannot hold",
    (number) => {
      for (const text of [number, `[${number}]`, `{"a":{"b":[1,{"c":${number}}]}}`]) {
        expect(reasonOf(() => parseJson(text))).toBe("number");
      }
    },
  );

  it.each([
    "1.7976931348623157e308",
    "1e-400",
    `0.${"0".repeat(400)}1`,
    "9".repeat(300),
    '"1e400"',
    '{"1e400":"face123"}',
    `["${"7".repeat(400)}"]`,
  ])("takes %s", (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it.each(["__proto__", "\\u005f_proto__", "__pr\\u006fto__", "_\\u005Fproto__", "__proto\\u005F_", "__p\\u0072oto__"])(
    "leaves out the key %s at any level, and nothing else",
    (key) => {
      const text = `{"a":[{"${key}":{"admin":true},"b":1}],"${key}":2,"constructor":{"prototype":3},"c":"${key}"}`;
      const value = parseJson(text);
      expect(Object.keys(Object(value))).toEqual(["a", "constructor", "c"]);
      expect(JSON.stringify(value)).toBe('{"a":[{"b":1}],"constructor":{"prototype":3},"c":"__proto__"}');
    },
  );
});

describe("decodeUtf8", () => {
  it("decodes any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        fc.pre(!text.startsWith("\ufeff"));
        expect(decodeUtf8(Buffer.from(text))).toBe(text);
      }),
    );
  });

  it("drops a byte order mark, once", () => {
    expect(decodeUtf8(Buffer.from("\ufeff\ufeff{}"))).toBe("\ufeff{}");
  });

  it.each([[[0xff]], [[0xc3]], [[0xed, 0xa0, 0x80]], [[0xc0, 0xaf]], [[0x22, 0xe2, 0x82, 0x22]]])(
    "refuses the bytes %j",
    (bytes) => {
      expect(reasonOf(() => decodeUtf8(Buffer.from(bytes)))).toBe("utf8");
    },
  );
});
