import { describe, expect, it } from "vitest";
import { median, medianOfPairs, quantile } from "./statistics.ts";

describe("median", () => {
  it("is the middle of an odd number of values, whatever their order", () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([100, 20, 3])).toBe(20);
  });

  it("is the mean of the two middle ones of an even number", () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it("leaves its input alone and refuses to invent a value", () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
    expect(() => median([])).toThrow(RangeError);
  });
});

describe("quantile", () => {
  it("is a value that the fraction of all values does not exceed", () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([quantile(values, 0.5), quantile(values, 0.99), quantile(values, 0)]).toEqual([50, 99, 1]);
    expect(quantile([7], 0.99)).toBe(7);
    expect(() => quantile([], 0.5)).toThrow(RangeError);
  });
});

describe("medianOfPairs", () => {
  it("pairs by round, so that a round slow for both changes nothing", () => {
    const ratio = medianOfPairs([800, 80, 810], [100, 10, 90], (a, b) => a / b);
    expect(ratio).toBe(8);
  });

  it("uses only rounds that both have", () => {
    expect(medianOfPairs([5, 7, 1000], [1, 2], (a, b) => a - b)).toBe(4.5);
  });
});
