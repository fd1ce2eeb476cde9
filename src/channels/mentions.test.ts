import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findMentions, mentionsName } from "./mentions.ts";

const leading = { leading: true };

describe("mentions in plain text", () => {
  it.each([
    ["bob: hello", true],
    ["bob, hello", true],
    ["alice, bob: hello", true],
    ["alice,bob: hello", true],
    ["alice,, bob: hello", true],
    ["hello @bob!", true],
    ["bobby: hello", false],
    ["hello bob: you", false],
    ["mail@bob", false],
  ])("%s", (text, expected) => {
    expect(mentionsName(text, "bob", leading)).toBe(expected);
  });

  it("are looked for in time, whatever the text", () => {
    const pieces = fc.array(fc.constantFrom("a", ",", " ", "bob", ":", "@", "."), { maxLength: 2_000 });
    fc.assert(
      fc.property(pieces, (all) => {
        const text = all.join("");
        expect(findMentions(text, "bob", leading).includes("bob")).toBe(mentionsName(text, "bob", leading));
      }),
    );
    expect(mentionsName(`${"a,".repeat(100_000)} x`, "bob", leading)).toBe(false);
  });
});
