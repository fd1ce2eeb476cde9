/** What `dragoman top` shows of the nodes of a cluster. */

import { displayWidth, table, truncateToWidth } from "../../../core/cli/render/text.ts";
import type { NodeReport } from "../../../core/engine/node-report.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import type { StoreNode, StoreStats } from "../../../core/store/contract.ts";

/** A node with what it has reported. */
export interface ShownNode extends Omit<StoreNode, "report"> {
  readonly report: NodeReport | undefined;
  readonly rates: Rates | undefined;
}

/** Between the two newest reports of a node: in between nothing is known. */
interface Rates {
  readonly commitsPerSecond: number;
  readonly eventsPerSecond: number;
  /** Time of one commit, on average; undefined if there was none. */
  readonly commitMs: number | undefined;
}

const ID_END = 8;
const MAX_HOST = 11;

/** The most important first: a terminal shows those that fit. */
const COLUMNS: readonly (readonly [header: string, cell: (node: ShownNode) => string])[] = [
  ["NODE", ({ id }) => shortenId(id)],
  ["HOST", ({ host = "" }) => truncateToWidth(host, MAX_HOST)],
  ["BEAT", beatOf],
  ["TASKS", ({ tasks }) => String(tasks)],
  ["QUEUED", ({ report }) => String(report?.queued ?? "")],
  ["COMMITS/S", ({ rates }) => rates?.commitsPerSecond.toFixed(0) ?? ""],
  ["EVENTS/S", ({ rates }) => rates?.eventsPerSecond.toFixed(0) ?? ""],
  ["MS/COMMIT", ({ rates }) => rates?.commitMs?.toFixed(1) ?? ""],
  ["FENCED", ({ report }) => String(report?.fenced ?? "")],
  ["TAKEN OVER", ({ report }) => String(report?.takenOver ?? "")],
  ["LATE", ({ report }) => String(report?.missedWakeups ?? "")],
  ["STREAMS", ({ report }) => String(report?.streams ?? "")],
  ["UP", ({ upMs }) => formatDuration(Math.max(1, Math.round(upMs / 1000)) * 1000)],
  ["PID", ({ pid }) => String(pid ?? "")],
  ["AGENTS", ({ report }) => (report?.agents ?? []).join(" ")],
];

/** Ids begin with the time, which is the same for workers that were started together. */
function shortenId(id: string): string {
  return id.length <= ID_END + 1 ? id : `…${id.slice(-ID_END)}`;
}

function beatOf({ alive, beatAgoMs, left }: ShownNode): string {
  if (alive) return `${(beatAgoMs / 1000).toFixed(1)}s`;
  return left ? "left" : "dead";
}

/** `columns`: of the terminal; undefined: there is none, and the table is as wide as it has to be. */
export function renderCluster(nodes: readonly ShownNode[], stats: StoreStats, columns: number | undefined): string {
  const living = nodes.filter(({ alive }) => alive);
  // One that has left is of interest only for what it has left behind.
  const gone = nodes.filter(({ alive, left, tasks }) => !alive && (!left || tasks > 0));
  const rows = [...living, ...gone.sort((one, other) => one.beatAgoMs - other.beatAgoMs)];
  const { tasks, byState, events } = stats;
  const open = (byState.TASK_STATE_SUBMITTED ?? 0) + (byState.TASK_STATE_WORKING ?? 0);
  const waiting = (byState.TASK_STATE_INPUT_REQUIRED ?? 0) + (byState.TASK_STATE_AUTH_REQUIRED ?? 0);
  const held = living.reduce((sum, node) => sum + node.tasks, 0);
  const summary = [
    `${living.length} of ${rows.length} nodes alive; ${held} leases held, ${Math.max(0, open - held)} not`,
    `${tasks} tasks: ${open} running or queued, ${waiting} waiting for a caller; ${events} events`,
  ];
  const cells = COLUMNS.map(([header, cell]) => [header, ...rows.map((node) => safeLine(cell(node)))]);
  const shown = columns === undefined ? cells : cells.slice(0, countFitting(cells, columns));
  const lines = ["", ...rows].map((_, row) => shown.map((column) => column[row] ?? ""));
  return `${summary.join("\n")}\n\n${table(lines)}`;
}

/** How many of the columns fit; the last of all is cut if it has to be. */
function countFitting(cells: readonly (readonly string[])[], columns: number): number {
  let width = 0;
  const count = cells.findIndex((column, at) => {
    const wanted = at === cells.length - 1 ? column.slice(0, 1) : column;
    width += Math.max(...wanted.map(displayWidth)) + (at === 0 ? 0 : 2);
    // A line as wide as the terminal would wrap.
    return width > columns - 1;
  });
  return count === -1 ? cells.length : Math.max(count, 1);
}

/** Remembers the newest report of each node, and what it did between that and the one before. */
export function createRates(): (node: StoreNode) => ShownNode {
  const known = new Map<string, { beatAt: number; report: NodeReport; rates: Rates | undefined }>();
  return ({ report: text, ...node }) => {
    const report = text === undefined ? undefined : (JSON.parse(text) as NodeReport);
    if (report === undefined || !node.alive) return { ...node, report, rates: undefined };
    const before = known.get(node.id);
    const seconds = before === undefined ? 0 : (node.beatAt - before.beatAt) / 1000;
    const rates = before === undefined || seconds <= 0 ? before?.rates : toRates(report, before.report, seconds);
    known.set(node.id, { beatAt: node.beatAt, report, rates });
    return { ...node, report, rates };
  };
}

function toRates(report: NodeReport, before: NodeReport, seconds: number): Rates {
  const commits = report.commits - before.commits;
  return {
    commitsPerSecond: commits / seconds,
    eventsPerSecond: (report.events - before.events) / seconds,
    commitMs: commits === 0 ? undefined : (report.commitMs - before.commitMs) / commits,
  };
}
