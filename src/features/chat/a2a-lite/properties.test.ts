import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../../core/model/testing/exploring.ts";
import { normalizeText } from "./characters.ts";
import { formatChat, formatMessage } from "./format.ts";
import type { LiteMessage } from "./message.ts";
import { parsePost } from "./parse.ts";
import { anyMessage, anyText } from "./testing/arbitraries.ts";

/** Networks replace control characters. */
const bodyOf = ({ body }: LiteMessage) => normalizeText(body);

const CASES = { numRuns: cases(150_000, 1_000) };

describe("any message", () => {
  it.each([{ singleLine: false }, { singleLine: true }])("is read as it was written: %o", (format) => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const text = formatMessage(message, undefined, format);
        if (format.singleLine) expect(text).not.toMatch(/[\r\n]/);
        expect(parsePost(text, format)).toEqual({ kind: "message", message: { ...message, body: bodyOf(message) } });
      }),
      CASES,
    );
  });

  it("is read as a piece", () => {
    const piece = fc.record({ mid: fc.uuid(), part: fc.integer({ min: 1, max: 9_999 }), of: fc.constant(9_999) });
    fc.assert(
      fc.property(anyMessage, piece, fc.boolean(), (message, any, singleLine) => {
        const text = formatMessage(message, any, { singleLine });
        const expected = { ...message, body: bodyOf(message) };
        expect(parsePost(text, { singleLine })).toEqual({ kind: "message", message: expected, piece: any });
      }),
      CASES,
    );
  });

  it("that was damaged is a message, chat or invalid", () => {
    const damage = fc.tuple(fc.nat(), fc.nat({ max: 8 }), anyText);
    fc.assert(
      fc.property(anyMessage, damage, fc.boolean(), (message, [at, length, inserted], singleLine) => {
        const text = formatMessage(message, undefined, { singleLine });
        const start = at % (text.length + 1);
        const damaged = text.slice(0, start) + inserted + text.slice(start + length);
        expect(["message", "chat", "invalid"]).toContain(parsePost(damaged, { singleLine }).kind);
      }),
      CASES,
    );
  });
});

describe("any text", () => {
  it("is parsed, and what was parsed is a message that can be written", () => {
    fc.assert(
      fc.property(anyText, fc.boolean(), (text, singleLine) => {
        const parsed = parsePost(text, { singleLine });
        if (parsed.kind !== "message") return;
        const again = parsePost(formatMessage(parsed.message, parsed.piece, { singleLine }), { singleLine });
        expect(again.kind).toBe("message");
      }),
      CASES,
    );
  });

  it("is never a message if it is sent as chat", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(parsePost(formatChat(text))).toEqual({ kind: "chat", text: normalizeText(text) });
      }),
      CASES,
    );
  });
});
