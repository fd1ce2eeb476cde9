import { describe, expect, it } from "vitest";
import type { Sample } from "./measures.ts";
import { judge, type Target } from "./verdict.ts";

const samples = new Map<string, Sample[]>([
  [
    "ours",
    [
      { perSecond: 160, cpuMillis: 390 },
      { perSecond: 90, cpuMillis: 410 },
      { perSecond: 170, cpuMillis: 395 },
    ],
  ],
  [
    "theirs",
    [
      { perSecond: 20, cpuMillis: 300 },
      { perSecond: 10, cpuMillis: 300 },
      { perSecond: 20, cpuMillis: 300 },
    ],
  ],
]);

function only(target: Target) {
  return judge([target], samples)[0];
}

describe("judge", () => {
  it("takes the median of the ratios of each round", () => {
    expect(only({ measure: "perSecond", of: "ours", times: "theirs", atLeast: 8.5 })).toEqual({
      text: "ours: per second ≥ 8.5 × theirs",
      value: 8.5,
      met: true,
    });
    expect(only({ measure: "perSecond", of: "ours", times: "theirs", atLeast: 8.6 })?.met).toBe(false);
    expect(only({ measure: "perSecond", of: "ours", times: "theirs", atMost: 8 })?.met).toBe(false);
  });

  it("judges differences and values of one contestant alone", () => {
    expect(only({ measure: "cpuMillis", of: "ours", plus: "theirs", atMost: 100 })).toEqual({
      text: "ours: CPU ms ≤ theirs + 100",
      value: 95,
      met: true,
    });
    expect(only({ measure: "cpuMillis", of: "ours", alone: true, atMost: 394 })).toEqual({
      text: "ours: CPU ms ≤ 394",
      value: 395,
      met: false,
    });
  });

  it("does not pass what was not measured", () => {
    expect(only({ measure: "perSecond", of: "ours", times: "absent", atLeast: 1 })).toEqual({
      text: "ours: per second ≥ 1 × absent",
      met: false,
    });
    expect(only({ measure: "heldBytes", of: "ours", alone: true, atMost: 1 })?.met).toBe(false);
  });
});
