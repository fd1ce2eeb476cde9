import { expect, it } from "vitest";
import { printReport, type ScenarioReport } from "./report.ts";

const report: ScenarioReport = {
  name: "pairs",
  title: "Pairs",
  setup: "",
  medians: {
    "JSON-RPC → direct": { cpuMicros: 60 },
    "JSON-RPC → gRPC": { cpuMicros: 150.25, addedMillis: 0.5 },
    "gRPC → direct": { cpuMicros: 1_070 },
    "gRPC → gRPC": { addedMillis: 1.25 },
  },
  failures: {},
  verdicts: [],
};

it("prints one row for each label", () => {
  expect(printReport(report).split("\n")).toEqual([
    "",
    "Pairs  [pairs]",
    "                     CPU µs each  p50 ms added",
    "  JSON-RPC → direct         60.0             –",
    "  JSON-RPC → gRPC          150.3          0.50",
    "  gRPC → direct          1,070.0             –",
    "  gRPC → gRPC                  –          1.25",
  ]);
});

it("prints a grid for each of its measures, with a row and a column for each half of the labels", () => {
  expect(printReport({ ...report, grid: ["cpuMicros", "addedMillis"] }).split("\n")).toEqual([
    "",
    "Pairs  [pairs]",
    "  CPU µs each, from → to   direct   gRPC",
    "  JSON-RPC                   60.0  150.3",
    "  gRPC                    1,070.0      –",
    "  p50 ms added, from → to  direct  gRPC",
    "  JSON-RPC                      –  0.50",
    "  gRPC                          –  1.25",
  ]);
});
