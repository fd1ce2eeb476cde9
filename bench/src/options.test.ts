import { describe, expect, it } from "vitest";
import { parseOptions, UsageError } from "./options.ts";

const known = ["send", "stream"];

describe("parseOptions", () => {
  it("runs everything in five rounds unless told otherwise", () => {
    expect(parseOptions([], known)).toEqual({ rounds: 5, quick: false, help: false });
  });

  it("takes names, rounds and the quick switch, which means one round", () => {
    expect(parseOptions(["--only", "send, stream"], known).only).toEqual(["send", "stream"]);
    expect(parseOptions(["--quick"], known)).toEqual({ rounds: 1, quick: true, help: false });
    expect(parseOptions(["--quick", "--rounds", "3"], known).rounds).toBe(3);
  });

  it.each([[["--only", "sned"]], [["--rounds", "0"]], [["--rounds", "two"]], [["--fast"]]])("refuses %j", (argv) => {
    expect(() => parseOptions(argv, known)).toThrow(UsageError);
  });
});
