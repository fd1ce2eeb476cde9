import { expect, it } from "vitest";
import type { ScenarioReport } from "./report.ts";
import { mergeResults } from "./results.ts";
import { scenarios } from "./scenarios/index.ts";

const report = (name: string, title = name): ScenarioReport => ({
  name,
  title,
  setup: "",
  medians: {},
  failures: {},
  verdicts: [],
});

it("records every scenario of a run with its commit, gRPC and links too", () => {
  const order = scenarios.map(({ name }) => name);
  const run = { commit: "abc", at: "2026-01-02T03:04:05.000Z", rounds: 5 };
  const { date, scenarios: recorded } = mergeResults(
    undefined,
    run,
    order.map((name) => report(name)),
    order,
  );
  expect(date).toBe("2026-01-02");
  expect(recorded.map(({ commit, name, rounds }) => [name, commit, rounds])).toEqual(
    order.map((name) => [name, "abc", 5]),
  );
  expect(order).toEqual(
    expect.arrayContaining([
      "grpc-send",
      "grpc-stream",
      "link-frames",
      "link-sessions",
      "bridge-pairs",
      "workflow",
      "workflow-runs",
    ]),
  );
});

it("keeps the other scenarios of the commit when some are run again", () => {
  const run = (commit: string) => ({ commit, at: "2026-01-02T03:04:05.000Z", rounds: 5 });
  const first = mergeResults(undefined, run("one"), [report("b"), report("a")], ["a", "b", "c"]);
  const second = mergeResults(first, run("two"), [report("b", "again"), report("c")], ["a", "b", "c"]);
  expect(second.scenarios.map(({ commit, title }) => [title, commit])).toEqual([
    ["a", "one"],
    ["again", "two"],
    ["c", "two"],
  ]);
});
