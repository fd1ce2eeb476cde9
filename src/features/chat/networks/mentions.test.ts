import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findMentions, mentionsName } from "./mentions.ts";

describe("mentions in plain text", () => {
  it.each([
    ["bob: hello", true],
    ["bob, hello", true],
    ["alice, bob: hello", true],
    ["alice,bob: hello", true],
    ["alice,, bob: hello", true],
    ["hello @bob!", true],
    ["bob：写一首诗", true],
    ["bob，你好", true],
    ["bob ：你好", true],
    ["爱丽丝、bob：你好", true],
    ["@bob：写", true],
    ["@bob写一首诗", true],
    ["@bobé", false],
    ["bob、alice 都在", false],
    ["你好，bob：", true],
    ["bobby：你好", false],
    ["bobby: hello", false],
    ["hello bob: you", false],
    ["mail@bob", false],
  ])("%s", (text, expected) => {
    expect(mentionsName(text, "bob")).toBe(expected);
  });

  it("are looked for in time, whatever the text", () => {
    const pieces = fc.array(fc.constantFrom("a", ",", " ", "bob", ":", "@", "."), { maxLength: 2_000 });
    fc.assert(
      fc.property(pieces, (all) => {
        const text = all.join("");
        expect(findMentions(text, "bob").includes("bob")).toBe(mentionsName(text, "bob"));
      }),
    );
    expect(mentionsName(`${"a,".repeat(100_000)} x`, "bob")).toBe(false);
  });
});
