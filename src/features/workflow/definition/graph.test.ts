import { describe, expect, it } from "vitest";
import { toDot, toMermaid } from "./graph.ts";
import { parseWorkflow } from "./load.ts";
import { callsOf, checkTargets } from "./targets.ts";

const workflow = parseWorkflow(
  `
steps:
  join: { agent: x, needs: [draft, each] }
  list: { skill: list }
  draft: { needs: [list], workflow: { name: draft, steps: { 提纲: { agent: 'o"x' }, b: { agent: c, needs: [提纲] } } } }
  each: { url: "https://x.example/?a=1&b=2", foreach: "\${steps.list.data.items}", when: "\${steps.list.data.n} > 0" }
`,
  { source: "flow.yaml" },
);

describe("the graph", () => {
  it("is drawn by Mermaid", () => {
    expect(toMermaid(workflow)).toBe(`flowchart TD
  s1["list<br/>skill list"]
  subgraph s2["draft<br/>workflow draft"]
    s2_1["提纲<br/>agent o#34;x"]
    s2_2["b<br/>agent c"]
    s2_1 --> s2_2
  end
  s3["each<br/>https://x.example/?a=1#38;b=2<br/>when \${steps.list.data.n} #62; 0<br/>for each \${steps.list.data.items}"]
  s4[["join<br/>agent x"]]
  s1 --> s2
  s1 --> s3
  s2 --> s4
  s3 --> s4
`);
  });

  it("is drawn by Graphviz", () => {
    expect(toDot(workflow)).toBe(`digraph workflow {
  rankdir=TB
  compound=true
  node [shape=box]
  s1 [label="list\\nskill list"]
  subgraph cluster_s2 {
    label="draft\\nworkflow draft"
    s2_1 [label="提纲\\nagent o\\"x"]
    s2_2 [label="b\\nagent c"]
    s2_1 -> s2_2
  }
  s3 [label="each\\nhttps://x.example/?a=1&b=2\\nwhen \${steps.list.data.n} > 0\\nfor each \${steps.list.data.items}"]
  s4 [label="join\\nagent x", peripheries=2]
  s1 -> s2_1 [lhead=cluster_s2]
  s1 -> s3
  s2_2 -> s4 [ltail=cluster_s2]
  s3 -> s4
}
`);
  });
});

describe("the agents that steps call", () => {
  it("are those of sub-workflows, too", () => {
    expect([...callsOf(workflow)].map(({ path }) => path)).toEqual([
      "steps.join",
      "steps.list",
      "steps.draft.workflow.steps.提纲",
      "steps.draft.workflow.steps.b",
      "steps.each",
    ]);
  });

  it("have to be there, once", () => {
    const agents = [
      { name: "x", skills: ["list"] },
      { name: "cc", skills: ["list"] },
    ];
    const shown = checkTargets(workflow, agents, "flow.yaml").map(
      ({ source, line, column, path, message }) => `${source}:${line}:${column}: ${path}: ${message}`,
    );
    expect(shown).toEqual([
      'flow.yaml:4:3: steps.list.skill: more than one agent has the skill "list": x, cc; name one of them',
      'flow.yaml:5:61: steps.draft.workflow.steps.提纲.agent: there is no agent "o"x"; did you mean "x"?',
      'flow.yaml:5:83: steps.draft.workflow.steps.b.agent: there is no agent "c"; did you mean "cc"?',
    ]);
    expect(checkTargets(workflow, [], "flow.yaml")[1]?.message).toBe('no agent has the skill "list"');
  });
});
