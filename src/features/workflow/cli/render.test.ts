import { describe, expect, it } from "vitest";
import { captureOutput } from "../../../core/cli/testing/run-in-process.ts";
import { parseWorkflow } from "../definition/load.ts";
import { RunView, renderChange, renderTree, type StepUpdate } from "./render.ts";

const workflow = parseWorkflow(
  `
steps:
  list: { agent: lister }
  each: { agent: worker, foreach: "\${steps.list.data}" }
  draft: { needs: [list], workflow: { steps: { a: { agent: x }, b: { agent: x } } } }
  last: { agent: x, needs: [each, draft] }
`,
  { source: "flow.yaml" },
);

const UPDATES: readonly (readonly [at: number, update: StepUpdate])[] = [
  [0, { step: "list", state: "started", agent: "lister", dialect: "local" }],
  [2_000, { step: "list", state: "completed" }],
  [2_000, { step: "each", state: "started" }],
  [2_000, { step: "draft", state: "started" }],
  [2_000, { step: "each[0]", state: "started", agent: "https://x.example", dialect: "a2a-v1" }],
  [3_000, { step: "each[1]", state: "started", agent: "https://x.example", dialect: "a2a-v1" }],
  [4_000, { step: "each[0]", state: "completed" }],
  [4_000, { step: "draft/a", state: "failed", agent: "x", dialect: "local", detail: "No\u001b[31m luck" }],
];

function viewAfter(updates: readonly (readonly [number, StepUpdate])[]) {
  const view = new RunView(workflow);
  const changes = updates.map(([at, update]) => renderChange(view.apply(update, at)));
  return { view, changes };
}

describe("a run", () => {
  it("is a tree on a terminal", () => {
    const { view } = viewAfter(UPDATES);
    expect(renderTree(view.rows, { now: 65_000, columns: 80, lines: 10 })).toEqual([
      "✓ list       lister             local   completed        2s",
      "▸ each                                  started, 1 done  1m03s",
      "  ▸ each[1]  https://x.example  a2a-v1  started          1m02s",
      "▸ draft                                 started          1m03s",
      "  ✗ a        x                  local   failed           0s",
      "· last                                  waiting",
    ]);
  });

  it("fits the terminal, with what runs", () => {
    const { view } = viewAfter(UPDATES);
    expect(renderTree(view.rows, { now: 65_000, columns: 30, lines: 4 })).toEqual([
      "▸ each…",
      "  ▸ each[1]  https://x.exampl…",
      "▸ draft…",
      "… and 3 more",
    ]);
  });

  it("is a line for each change elsewhere", () => {
    expect(viewAfter(UPDATES).changes).toEqual([
      "list: started (lister, local)",
      "list: completed after 2s (lister, local)",
      "each: started",
      "draft: started",
      "each[0]: started (https://x.example, a2a-v1)",
      "each[1]: started (https://x.example, a2a-v1)",
      "each[0]: completed after 2s (https://x.example, a2a-v1)",
      "draft/a: failed after 0s (x, local): No\\x1b[31m luck",
    ]);
  });

  it("keeps the steps of a repeated sub-workflow below it", () => {
    const { view } = viewAfter([
      [0, { step: "draft", state: "started" }],
      [0, { step: "draft/a", state: "failed" }],
      [1, { step: "draft", state: "retrying" }],
      [2, { step: "draft#2/a", state: "started" }],
    ]);
    expect(view.rows.map(({ step }) => step)).toEqual(["list", "each", "draft", "draft/a", "draft#2/a", "last"]);
  });
});

describe("a status of several lines", () => {
  it("is replaced and erased as a whole", () => {
    const captured = captureOutput({ isTTY: true, columns: 20, environment: { NO_COLOR: "1" } });
    captured.output.status("one\ntwo");
    captured.output.status("three");
    captured.output.status(undefined);
    expect(captured.err).toBe("\r\u001b[Kone\ntwo\r\u001b[K\u001b[A\u001b[Kthree\r\u001b[K");
  });
});
