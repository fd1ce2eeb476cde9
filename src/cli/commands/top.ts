import { setTimeout as pause } from "node:timers/promises";
import type { NodeReport } from "../../engine/node-report.ts";
import { formatDuration } from "../../model/duration.ts";
import type { StoreNode, StoreStats, TaskStore } from "../../store/contract.ts";
import { CommandError } from "../errors.ts";
import { readDuration } from "../flag-values.ts";
import { type Output, printResult } from "../output.ts";
import { table } from "../render/text.ts";
import { type StoreFlags, withStore } from "./store.ts";

export interface TopFlags extends StoreFlags {
  readonly interval: string;
  readonly once?: boolean;
}

/** The cluster at one moment. */
interface View {
  /** By the clock of this machine, in milliseconds; only differences matter. */
  readonly at: number;
  readonly nodes: readonly StoreNode[];
  readonly stats: StoreStats;
}

/** Shows the nodes of a cluster until it is interrupted; where there is no terminal, once. */
export async function top(output: Output, flags: TopFlags): Promise<void> {
  const intervalMs = readDuration("--interval", flags.interval, 100);
  await withStore(flags, "inspect", async (store) => {
    let before = await look(store);
    if (flags.output === "json" || flags.once === true || !output.canShowStatus) {
      await pause(intervalMs);
      const now = await look(store);
      printResult(output, flags.output, toJson(now, before), () => render(now, before));
      return;
    }
    const stopped = new AbortController();
    const stop = () => stopped.abort();
    process.once("SIGINT", stop).once("SIGTERM", stop);
    while (!stopped.signal.aborted) {
      const now = await look(store).catch((error: unknown) => {
        output.info(`Error: ${error instanceof Error ? error.message : String(error)}`);
        return before;
      });
      output.status(render(now, before).trimEnd());
      before = now;
      await pause(intervalMs, undefined, { signal: stopped.signal }).catch(() => {});
    }
    output.status(undefined);
    output.write(render(before, before));
  });
}

async function look(store: TaskStore): Promise<View> {
  if (store.nodes === undefined) {
    throw new CommandError(
      "DRAGOMAN_ERR_NO_CLUSTER",
      `One process owns ${store.description}: there are no other nodes.`,
      "dragoman store stats shows what is in it; /metrics of the server shows what it does.",
    );
  }
  const [nodes, stats] = await Promise.all([store.nodes(), store.stats()]);
  return { at: performance.now(), nodes, stats };
}

const HEADER = [
  "NODE",
  "HOST",
  "PID",
  "UP",
  "BEAT",
  "TASKS",
  "QUEUED",
  "STREAMS",
  "COMMITS/S",
  "EVENTS/S",
  "MS/COMMIT",
  "TAKEN OVER",
  "FENCED",
  "LATE",
  "AGENTS",
];

function render(now: View, before: View): string {
  const { tasks, byState, events } = now.stats;
  const open = (byState.TASK_STATE_SUBMITTED ?? 0) + (byState.TASK_STATE_WORKING ?? 0);
  const waiting = (byState.TASK_STATE_INPUT_REQUIRED ?? 0) + (byState.TASK_STATE_AUTH_REQUIRED ?? 0);
  const alive = now.nodes.filter((node) => node.alive).length;
  const held = now.nodes.reduce((sum, node) => sum + (node.alive ? node.tasks : 0), 0);
  const summary =
    `${alive} of ${now.nodes.length} nodes alive; ${tasks} tasks: ${open} running or queued, ${waiting} waiting for a caller; ` +
    `${held} leases held, ${Math.max(0, open - held)} not; ${events} events\n\n`;
  const rows = now.nodes.map((node) => {
    const rate = ratesOf(node, now, before);
    const { report } = rate;
    return [
      node.id,
      node.host ?? "",
      String(node.pid ?? ""),
      formatDuration(roundToSeconds(node.upMs)),
      node.alive ? `${(node.beatAgoMs / 1000).toFixed(1)} s` : "dead",
      String(node.tasks),
      String(report?.queued ?? ""),
      String(report?.streams ?? ""),
      rate.commits.toFixed(0),
      rate.events.toFixed(0),
      rate.commitMs === undefined ? "" : rate.commitMs.toFixed(1),
      String(report?.takenOver ?? ""),
      String(report?.fenced ?? ""),
      String(report?.missedWakeups ?? ""),
      (report?.agents ?? []).join(" "),
    ];
  });
  return summary + table([HEADER, ...rows]);
}

const roundToSeconds = (ms: number) => Math.max(1, Math.round(ms / 1000)) * 1000;

interface Rates {
  readonly report: NodeReport | undefined;
  /** Per second, as far as heartbeats tell: between two of them nothing is known. */
  readonly commits: number;
  readonly events: number;
  /** Time of one commit, on average; undefined if there was none. */
  readonly commitMs: number | undefined;
}

function ratesOf(node: StoreNode, now: View, before: View): Rates {
  const report = readReport(node);
  const earlierNode = before.nodes.find(({ id }) => id === node.id);
  const earlier = earlierNode && readReport(earlierNode);
  // From one heartbeat to the other, not from one look to the other.
  const seconds =
    earlierNode === undefined ? 0 : (now.at - node.beatAgoMs - (before.at - earlierNode.beatAgoMs)) / 1000;
  if (report === undefined || earlier === undefined || seconds < 0.05) {
    return { report, commits: 0, events: 0, commitMs: report && average(report.commitMs, report.commits) };
  }
  const commits = report.commits - earlier.commits;
  return {
    report,
    commits: commits / seconds,
    events: (report.events - earlier.events) / seconds,
    commitMs: average(report.commitMs - earlier.commitMs, commits),
  };
}

const average = (sum: number, count: number) => (count === 0 ? undefined : sum / count);

function readReport({ report }: StoreNode): NodeReport | undefined {
  return report === undefined ? undefined : (JSON.parse(report) as NodeReport);
}

function toJson(now: View, before: View) {
  return {
    ...now.stats,
    nodes: now.nodes.map((node) => {
      const { report, commits, events, commitMs } = ratesOf(node, now, before);
      const { report: _text, ...known } = node;
      return { ...known, ...report, commitsPerSecond: commits, eventsPerSecond: events, commitMs: commitMs ?? null };
    }),
  };
}
