import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "./duration.ts";

describe("durations", () => {
  it.each([
    ["500ms", 500],
    ["2", 2000],
    ["1.5s", 1500],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["30d", 2_592_000_000],
    [" 1w ", 604_800_000],
  ])("reads %s", (text, milliseconds) => {
    expect(parseDuration(text, { typed: true })).toBe(milliseconds);
  });

  it.each(["", "soon", "-1s", "5 m", "10x", "1e3", "s"])("refuses %j", (text) => {
    expect(parseDuration(text, { typed: true })).toBeUndefined();
  });

  it.each(["2", "1h30m", "1w", " 5m"])("refuses %j where they are written down", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  it("writes what it reads", () => {
    fc.assert(fc.property(fc.nat(), (milliseconds) => parseDuration(formatDuration(milliseconds)) === milliseconds));
  });
});
