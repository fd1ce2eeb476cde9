import fc from "fast-check";
import { expect, test } from "vitest";
import { describeDialect } from "../../../src/core/dialects/contract-suite.ts";
import { fromLine, toLine } from "./codec.ts";
import { chat } from "./index.ts";

describeDialect(chat, { exact: false });

test("a line is one line, whatever was sent, and reads back as it was", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1 });
  fc.assert(
    fc.property(name, fc.string({ unit: "grapheme" }), (conversation, words) => {
      const line = toLine({ conversation, words });
      expect(line).not.toMatch(/[\n\r]/);
      expect(fromLine(line)).toEqual({ conversation, words });
    }),
  );
});
