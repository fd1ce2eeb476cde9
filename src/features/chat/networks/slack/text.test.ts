import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeText, findMentions, unescapeText } from "./text.ts";

describe("text of Slack", () => {
  it("is read as it was written, whatever it is", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => unescapeText(escapeText(text)) === text));
  });

  it.each([
    ["<https://example.com/a?b=1&amp;c=2>", "https://example.com/a?b=1&c=2"],
    ["<http://example.com|example.com>", "example.com"],
    ["<https://example.com|the site>", "the site (https://example.com)"],
    ["<mailto:a@b.example|a@b.example>", "a@b.example"],
    ["<#C012AB|general> <#C012AB>", "#general #C012AB"],
    ["<!here> <!subteam^S1|@team>", "@here @team"],
    ["<@U012AB> &lt;@U034CD&gt;", "<@U012AB> <@U034CD>"],
    ["&amp;lt; a < b", "&lt; a < b"],
  ])("shows %s as people see it", (written, shown) => {
    expect(unescapeText(written)).toBe(shown);
  });

  it("mentions users that Slack has linked, not text that looks like it", () => {
    expect(findMentions("<@U012AB> <@U034CD|anna> <@U012AB> &lt;@U999&gt;")).toEqual(["U012AB", "U034CD"]);
  });
});
