/** A workflow on the terminal: its plan before it runs, and its steps while they run. */

import { field, formatElapsed, table, truncateToWidth } from "../../../core/cli/render/text.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import { describeTarget } from "../definition/graph.ts";
import { STEP_STATES, type Step, type StepTarget, type Workflow } from "../definition/plan.ts";

export interface PlannedStep {
  /** `2.1` is the first step of the sub-workflow that is the second. */
  readonly number: string;
  readonly step: string;
  readonly target: string;
  /** What the target stands for. */
  readonly resolved: string;
  readonly needs: readonly string[];
  /** What else is known of when and how it runs. */
  readonly notes: readonly string[];
}

type Resolve = (target: Exclude<StepTarget, { workflow: Workflow }>) => string;

/** The steps in the order in which they can run, each sub-workflow followed by its own. */
export function planSteps(workflow: Workflow, resolve: Resolve, prefix = ""): readonly PlannedStep[] {
  return workflow.order.flatMap((name, at) => {
    const step = workflow.steps.get(name);
    if (step === undefined) return [];
    const number = `${prefix}${at + 1}`;
    const { target, needs } = step;
    const inner = "workflow" in target ? planSteps(target.workflow, resolve, `${number}.`) : [];
    const resolved = "workflow" in target ? countOf(target.workflow) : resolve(target);
    return [{ number, step: name, target: describeTarget(target), resolved, needs, notes: notesOf(step) }, ...inner];
  });
}

const countOf = ({ steps }: Workflow): string => (steps.size === 1 ? "1 step" : `${steps.size} steps`);

function notesOf({ when, foreach, concurrency, retry, timeoutMs, onFailure }: Step): readonly string[] {
  return [
    ...(when === undefined ? [] : ["conditional"]),
    ...(foreach === undefined ? [] : [`for each item, ${concurrency} at a time`]),
    ...(retry.attempts === 1 ? [] : [`${retry.attempts} attempts`]),
    ...(timeoutMs === undefined ? [] : [`timeout ${formatDuration(timeoutMs)}`]),
    ...(onFailure === "continue" ? ["may fail"] : []),
  ];
}

export function renderPlan(workflow: Workflow, steps: readonly PlannedStep[]): string {
  const rows = steps.map(({ number, step, target, resolved, needs, notes }) => [
    number,
    step,
    target,
    resolved,
    [...(needs.length === 0 ? [] : [`after ${needs.join(", ")}`]), ...notes].join("; "),
  ]);
  const { description, name, output } = workflow;
  return [
    name === undefined ? "" : field("Workflow", name),
    description === undefined ? "" : field("Description", description),
    `Steps:\n${table(rows, "  ")}`,
    field("Output", output.join(", ")),
  ].join("");
}

/** What is reported of a step while a workflow runs. */
export interface StepUpdate {
  /** `outline`; `outline[2]` for an item of a `foreach`; `draft/outline` for a step of the sub-workflow `draft`. */
  readonly step: string;
  /** `started`, `working`, `retrying`, a state that waits for an answer, or one in which a step can end. */
  readonly state: string;
  readonly agent?: string;
  readonly dialect?: string;
  readonly detail?: string;
}

export interface StepRow extends StepUpdate {
  readonly depth: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** Items of a `foreach` that have ended. */
  readonly done: number;
}

const WAITING = "waiting";
const MARKS: Readonly<Record<string, string>> = {
  [WAITING]: "·",
  completed: "✓",
  failed: "✗",
  canceled: "✗",
  rejected: "✗",
  skipped: "-",
};
const ENDED: ReadonlySet<string> = new Set(STEP_STATES);

/** The steps of a run as they change. */
export class RunView {
  readonly #rows = new Map<string, StepRow>();

  constructor({ order }: Workflow) {
    for (const step of order) this.#rows.set(step, { step, state: WAITING, depth: 0, done: 0 });
  }

  get rows(): readonly StepRow[] {
    return [...this.#rows.values()];
  }

  /** Returns the step as it is now. */
  apply(update: StepUpdate, now: number): StepRow {
    const { step } = update;
    const before = this.#rows.get(step);
    const parent = this.#rows.get(parentOf(step) ?? "");
    const hasEnded = ENDED.has(update.state);
    const row: StepRow = {
      depth: parent === undefined ? 0 : parent.depth + 1,
      done: 0,
      ...before,
      ...update,
      startedAt: before?.startedAt ?? now,
      ...(hasEnded && { endedAt: now }),
    };
    // There may be thousands of items: those that ended are only counted.
    if (parent !== undefined && hasEnded && step.endsWith("]")) {
      this.#rows.delete(step);
      this.#rows.set(parent.step, { ...parent, done: parent.done + 1 });
    } else if (before === undefined && parent !== undefined) this.#insert(row);
    else this.#rows.set(step, row);
    return row;
  }

  /** After the steps before it that have the same parent. */
  #insert(row: StepRow): void {
    const rows = this.rows;
    const parent = parentOf(row.step) as string;
    const last = rows.findLastIndex(({ step }) => step === parent || isBelow(step, parent));
    this.#rows.clear();
    for (const one of [...rows.slice(0, last + 1), row, ...rows.slice(last + 1)]) this.#rows.set(one.step, one);
  }
}

/** `draft#2/outline[1]` → `draft#2/outline` → `draft`, whichever attempt it is. */
function parentOf(step: string): string | undefined {
  if (step.endsWith("]")) return step.slice(0, step.lastIndexOf("["));
  const slash = step.lastIndexOf("/");
  return slash === -1 ? undefined : step.slice(0, slash).replace(/#\d+$/, "");
}

const isBelow = (step: string, parent: string): boolean =>
  step.startsWith(parent) && /^[#/[]/.test(step.slice(parent.length));

/** The steps as lines of a terminal, at most so many: first those that run, then the others. */
export function renderTree(
  rows: readonly StepRow[],
  { now, columns, lines }: { readonly now: number; readonly columns: number; readonly lines: number },
): readonly string[] {
  const isActive = ({ state }: StepRow) => state !== WAITING && !ENDED.has(state);
  const byInterest = new Set([...rows.filter(isActive), ...rows]);
  const chosen = new Set([...byInterest].slice(0, rows.length > lines ? lines - 1 : lines));
  const shown = rows.filter((row) => chosen.has(row));
  const cells = shown.map((row) => [
    `${"  ".repeat(row.depth)}${MARKS[row.state] ?? "▸"} ${nameOf(row)}`,
    row.agent ?? "",
    row.dialect ?? "",
    row.done === 0 ? row.state : `${row.state}, ${row.done} done`,
    row.startedAt === undefined ? "" : formatElapsed((row.endedAt ?? now) - row.startedAt),
  ]);
  const hidden = rows.length - shown.length;
  const text = table(cells).trimEnd().split("\n");
  return [...text, ...(hidden === 0 ? [] : [`… and ${hidden} more`])].map((line) => truncateToWidth(line, columns));
}

/** The last part of a path: its place in the tree has the rest. */
function nameOf({ depth, step }: StepRow): string {
  return depth === 0 ? step : step.slice(Math.max(step.lastIndexOf("/") + 1, 0));
}

/** One change as a line, for output that is not a terminal. */
export function renderChange({ step, state, agent, dialect, detail, startedAt = 0, endedAt }: StepRow): string {
  const where = [agent, dialect].filter((part) => part !== undefined).join(", ");
  const after = endedAt === undefined ? "" : ` after ${formatElapsed(endedAt - startedAt)}`;
  const reason = detail === undefined || detail === "" ? "" : `: ${detail}`;
  return safeLine(`${step}: ${state}${after}${where === "" ? "" : ` (${where})`}${reason}`);
}
