/** A workflow as a picture: its steps, what each calls, and which follows which. */

import { printCondition } from "./expression.ts";
import type { Step, StepTarget, Workflow } from "./plan.ts";
import { printTemplate } from "./template.ts";

export type GraphFormat = "mermaid" | "dot";

export function toGraph(workflow: Workflow, format: GraphFormat): string {
  return format === "mermaid" ? toMermaid(workflow) : toDot(workflow);
}

/** What a step calls, in one line. */
export function describeTarget(target: StepTarget): string {
  if ("workflow" in target) return `workflow ${target.workflow.name ?? ""}`.trim();
  return "agent" in target ? `agent ${target.agent}` : "url" in target ? target.url : `skill ${target.skill}`;
}

/** The lines of a step's box. */
function labelOf({ name, target, when, foreach }: Step): readonly string[] {
  return [
    name,
    describeTarget(target),
    ...(when === undefined ? [] : [`when ${printCondition(when)}`]),
    ...(foreach === undefined
      ? []
      : [`for each ${foreach.kind === "reference" ? printTemplate(foreach) : "of a list"}`]),
  ];
}

interface Node {
  readonly id: string;
  readonly step: Step;
  readonly label: readonly string[];
  readonly isOutput: boolean;
  /** Of a sub-workflow. */
  readonly inside: readonly Node[] | undefined;
}

/** Steps get numbers for ids: their names may have any letters. */
function nodesOf(workflow: Workflow, prefix = "s"): readonly Node[] {
  return workflow.order.flatMap((name, at): readonly Node[] => {
    const step = workflow.steps.get(name);
    if (step === undefined) return [];
    const id = `${prefix}${at + 1}`;
    const inside = "workflow" in step.target ? nodesOf(step.target.workflow, `${id}_`) : undefined;
    return [{ id, step, label: labelOf(step), isOutput: prefix === "s" && workflow.output.includes(name), inside }];
  });
}

function edgesOf(nodes: readonly Node[]): readonly (readonly [from: Node, to: Node])[] {
  const byName = new Map(nodes.map((node) => [node.step.name, node]));
  return nodes.flatMap((to) =>
    to.step.needs.flatMap((need) => {
      const from = byName.get(need);
      return from === undefined ? [] : [[from, to] as const];
    }),
  );
}

/** https://mermaid.js.org/syntax/flowchart.html; the steps of `output` are framed twice. */
export function toMermaid(workflow: Workflow): string {
  const draw = (nodes: readonly Node[], indent: string): readonly string[] => [
    ...nodes.flatMap(({ id, inside, isOutput, label }) => {
      const text = `"${label.map(escapeMermaid).join("<br/>")}"`;
      if (inside === undefined) return [`${indent}${id}${isOutput ? `[[${text}]]` : `[${text}]`}`];
      return [`${indent}subgraph ${id}[${text}]`, ...draw(inside, `${indent}  `), `${indent}end`];
    }),
    ...edgesOf(nodes).map(([from, to]) => `${indent}${from.id} --> ${to.id}`),
  ];
  return `${["flowchart TD", ...draw(nodesOf(workflow), "  ")].join("\n")}\n`;
}

/** Entities are written with # there; what has a meaning in HTML or Markdown is one. */
const escapeMermaid = (text: string): string =>
  text.replaceAll(/["&<>#;`]/g, (character) => `#${character.charCodeAt(0)};`);

/** For Graphviz; the steps of `output` are framed twice. */
export function toDot(workflow: Workflow): string {
  const draw = (nodes: readonly Node[], indent: string): readonly string[] => [
    ...nodes.flatMap(({ id, inside, isOutput, label }) => {
      const text = `"${label.map(escapeDot).join("\\n")}"`;
      if (inside === undefined) return [`${indent}${id} [label=${text}${isOutput ? ", peripheries=2" : ""}]`];
      return [
        `${indent}subgraph cluster_${id} {`,
        `${indent}  label=${text}`,
        ...draw(inside, `${indent}  `),
        `${indent}}`,
      ];
    }),
    ...edgesOf(nodes).map(([from, to]) => `${indent}${edgeOfDot(from, to)}`),
  ];
  const body = ["rankdir=TB", "compound=true", "node [shape=box]"].map((line) => `  ${line}`);
  return `${["digraph workflow {", ...body, ...draw(nodesOf(workflow), "  "), "}"].join("\n")}\n`;
}

/** Clusters have no edges there: one leads to a node inside and is cut off at the frame. */
function edgeOfDot(from: Node, to: Node): string {
  const cuts = [
    ...(from.inside === undefined ? [] : [`ltail=cluster_${from.id}`]),
    ...(to.inside === undefined ? [] : [`lhead=cluster_${to.id}`]),
  ];
  const [tail, head] = [innermost(from, -1), innermost(to, 0)];
  return `${tail} -> ${head}${cuts.length === 0 ? "" : ` [${cuts.join(", ")}]`}`;
}

function innermost(node: Node, at: number): string {
  const inner = node.inside?.at(at);
  return inner === undefined ? node.id : innermost(inner, at);
}

const escapeDot = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
