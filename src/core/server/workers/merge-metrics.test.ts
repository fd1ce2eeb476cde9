import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeMetrics } from "./merge-metrics.ts";

const report = (tasks: number, agents: number, lines = "") =>
  `# HELP dragoman_tasks_live Tasks.\n# TYPE dragoman_tasks_live gauge\ndragoman_tasks_live ${tasks}\n${lines}` +
  `# HELP dragoman_registry_agents Agents.\n# TYPE dragoman_registry_agents gauge\ndragoman_registry_agents{health="up"} ${agents}\n`;

describe("metrics of several workers", () => {
  it("adds up what each counts, and not what they share", () => {
    expect(mergeMetrics([report(2, 5), report(3, 5)])).toBe(report(5, 5));
  });

  it("keeps a series that only one has, under the comments of its metric", () => {
    const losses = (value: number) =>
      `# HELP dragoman_losses_total Losses.\n# TYPE dragoman_losses_total counter\ndragoman_losses_total{dialect="a b",kind="x"} ${value}\n`;
    expect(mergeMetrics([report(1, 1), report(1, 1, losses(4))]).split("\n")).toContain(
      'dragoman_losses_total{dialect="a b",kind="x"} 4',
    );
  });

  it("adds up summaries", () => {
    const summary = (sum: number, count: number) =>
      `# HELP dragoman_commit_duration_seconds Time.\n# TYPE dragoman_commit_duration_seconds summary\ndragoman_commit_duration_seconds_sum ${sum}\ndragoman_commit_duration_seconds_count ${count}\n`;
    expect(mergeMetrics([summary(0.5, 2), summary(1.5, 3)])).toBe(summary(2, 5));
  });

  it("gives a single report back as it is", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (tasks, agents) => {
        expect(mergeMetrics([report(tasks, agents)])).toBe(report(tasks, agents));
      }),
    );
  });
});
