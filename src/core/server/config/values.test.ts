import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../model/duration.ts";
import { closestMatch, editDistance } from "../../model/suggestions.ts";
import { expandVariables, Placeholders } from "../../yaml/document.ts";
import { formatSize, parseSize } from "../../yaml/value-types.ts";
import { isLoopback } from "../access/loopback.ts";

describe("durations", () => {
  it.each([
    ["500ms", 500],
    ["60s", 60_000],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    ["1.5h", 5_400_000],
    ["0s", 0],
  ])("%s", (text, milliseconds) => expect(parseDuration(text)).toBe(milliseconds));

  it.each(["", "60", "s", "-1s", "1 s", "1w", "1e3s", ".5s", "1.s", `${"9".repeat(20)}d`])("refuses %j", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );

  it("come back as they were written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds))).toBe(milliseconds);
      }),
    );
  });
});

describe("sizes", () => {
  it.each([
    ["16MiB", 16_777_216],
    ["1KB", 1_000],
    ["0.5KiB", 512],
    ["7B", 7],
  ])("%s", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each(["", "16", "16mib", "1TB", "-1B"])("refuses %j", (text) => expect(parseSize(text)).toBeUndefined());

  it("come back as they were written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 45 }), (bytes) => {
        expect(parseSize(formatSize(bytes))).toBe(bytes);
      }),
    );
  });
});

describe("expansion", () => {
  const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/).filter((text) => !(text in Object.prototype));
  const plain = fc.string().filter((text) => !text.includes(`\${`) && !text.endsWith("$"));

  it("leaves text without expressions alone", () => {
    fc.assert(
      fc.property(plain, (text) => {
        expect(expandVariables(text, {})).toEqual({ value: text, variables: [], faults: [] });
      }),
    );
  });

  it("puts in exactly the value, whatever it holds", () => {
    fc.assert(
      fc.property(plain, name, fc.string(), plain, (before, variable, value, after) => {
        const text = `${before}\${${variable}}${after}`;
        expect(expandVariables(text, { [variable]: value })).toEqual({
          value: before + value + after,
          variables: [variable],
          faults: [],
        });
      }),
    );
  });

  it("uses the default for what is unset or empty", () => {
    fc.assert(
      fc.property(
        name,
        fc.string().filter((text) => !text.includes("}")),
        (variable, otherwise) => {
          const text = `\${${variable}:-${otherwise}}`;
          expect(expandVariables(text, {}).value).toBe(otherwise);
          expect(expandVariables(text, { [variable]: "" }).value).toBe(otherwise);
          expect(expandVariables(text, { [variable]: "set" }).value).toBe("set");
        },
      ),
    );
  });

  it("faults a variable that is not set, but not an empty one", () => {
    expect(expandVariables(`\${A}`, {}).faults).toHaveLength(1);
    expect(expandVariables(`\${A}`, { A: "" })).toEqual({ value: "", variables: ["A"], faults: [] });
    expect(expandVariables(`\${toString}`, {}).faults).toHaveLength(1);
  });

  it("keeps escaped expressions, and faults what it cannot read", () => {
    expect(expandVariables(`$\${A} $A $`, {})).toEqual({ value: `\${A} $A $`, variables: [], faults: [] });
    for (const text of [`\${`, `\${}`, `\${1}`, `\${A`, `\${A-b}`, `\${ A }`])
      expect(expandVariables(text, { A: "a" }).faults).toHaveLength(1);
  });

  it("does not expand what a variable brought", () => {
    expect(expandVariables(`\${A}`, { A: `\${B}` }).value).toBe(`\${B}`);
  });
});

describe("placeholders", () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom("$", "{", "}", "\n", "\ue000", "\ue001", `\${A}`, `\${A:-b}`, `\${}`, `$\${`, `\${C:-{}`),
  );

  it("take no more and no less room, and give everything back", () => {
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join("");
        const placeholders = new Placeholders(text);
        expect(placeholders.hidden.length).toBe(text.length);
        expect(placeholders.hidden.split("\n").map((line) => line.length)).toEqual(
          text.split("\n").map((line) => line.length),
        );
        expect(placeholders.hidden).not.toMatch(/\$\{[^}\n]*\}/);
        expect(placeholders.reveal(placeholders.hidden)).toBe(text);
      }),
    );
  });
});

describe("likeness", () => {
  it("counts edits, swaps as one", () => {
    expect(editDistance("port", "prot")).toBe(1);
    expect(editDistance("", "abc")).toBe(3);
    expect(editDistance("kitten", "sitting")).toBe(3);
  });

  it("is symmetric and zero only for the same", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
      }),
    );
  });

  it("finds what may have been meant, and nothing else", () => {
    expect(closestMatch("Publicurl", ["port", "publicUrl"])).toBe("publicUrl");
    expect(closestMatch("xy", ["ab", "cd"])).toBeUndefined();
  });
});

describe("loopback", () => {
  it.each(["127.0.0.1", "127.8.9.10", "::1", "localhost", "app.localhost", "::ffff:127.0.0.1"])("%s is", (host) => {
    expect(isLoopback(host)).toBe(true);
  });
  it.each(["0.0.0.0", "::", "192.168.0.1", "example.com", "localhost.example.com", "128.0.0.1"])(
    "%s is not",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});
