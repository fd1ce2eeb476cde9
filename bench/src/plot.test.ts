import { describe, expect, it } from "vitest";
import { isPlottable, plot } from "./plot.ts";
import { scenarios } from "./scenarios/index.ts";

const send = {
  name: "send",
  medians: {
    "bare node:http": { cpuMicros: 50 },
    "dragoman memory": { cpuMicros: 60 },
    "a2a-js <memory>": { cpuMicros: 5_000 },
  },
};

describe("plot", () => {
  it("shows every contestant as a multiple of the first, with its own cost", () => {
    const svg = plot([send], "abc");
    expect(svg).toContain("1.0 × · 50.0 µs");
    expect(svg).toContain("1.2 × · 60.0 µs");
    expect(svg).toContain("100 × · 5.00 ms");
    expect(svg).toContain("a2a-js &lt;memory>");
    expect(svg).toContain("npm run bench, abc");
  });

  it("needs everything that it shows", () => {
    expect(isPlottable(scenarios)).toBe(true);
    expect(isPlottable(scenarios.filter(({ name }) => name !== "send"))).toBe(false);
  });

  it("leaves out what was not run, not measured or is not for the plot", () => {
    const svg = plot(
      [
        { name: "lookup", medians: {} },
        { name: "stream", medians: { broken: {} } },
      ],
      "abc",
    );
    expect(svg).not.toContain("Blocking send");
    expect(svg).not.toContain("broken");
    expect(svg).not.toContain("NaN");
  });
});
