import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RpcStatusError } from "../../wire/rpc.ts";
import { parseTimeout } from "./headers.ts";

describe("grpc-timeout", () => {
  it.each([
    ["1H", 3_600_000],
    ["2M", 120_000],
    ["3S", 3_000],
    ["4m", 4],
    ["5000u", 5],
    ["1u", 1],
    ["99999999n", 100],
    ["0m", 0],
  ])("%s is %d ms", (header, ms) => {
    expect(parseTimeout(header)).toBe(ms);
  });

  it("may be further off than a timer goes", () => {
    expect(parseTimeout("99999999H")).toBeUndefined();
  });

  it("is refused in any other form", () => {
    const form = /^\d{1,8}[HMSmun]$/;
    const words = fc.oneof(fc.constantFrom("", "1", "S", "-1S", "1.5S", "123456789S", "1 S", "1s"), fc.string());
    fc.assert(
      fc.property(
        words.filter((word) => !form.test(word)),
        (word) => {
          expect(() => parseTimeout(word)).toThrow(RpcStatusError);
        },
      ),
    );
  });
});
