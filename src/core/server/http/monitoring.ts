import type { UpstreamStatus } from "../../agents/upstream-of.ts";
import type { Engine } from "../../engine/engine.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { CounterName, Meter } from "../../model/ports.ts";
import { describeStoreError, type TaskStore } from "../../store/contract.ts";
import { type FullReply, jsonReply, PRIVATE_NO_STORE, type RequestHead } from "../../wire/exchange.ts";
import type { Authentication } from "../access/authentication.ts";
import type { ByteBudgets } from "../access/byte-budgets.ts";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Carriers } from "../carriers/carriers.ts";
import { isWorker, shareMetrics } from "../workers/worker.ts";

const COUNTER_HELP = {
  events_dropped_after_terminal: "Events an agent produced after its task had ended.",
  events_merged: "Text chunks merged because a task ran ahead of the store.",
  commits: "Groups of writes that the store took.",
  events_written: "Events of tasks that were written to the store.",
  commit_milliseconds: "Time that the store took for groups of writes, from sending them to the answer.",
  runs_fenced: "Runs that lost their task to another process.",
  runs_resumed: "Tasks taken up again after a crash.",
  runs_failed_by_crash: "Tasks failed because their process had stopped.",
  wakeups_missed: "Log readers that found news no wake-up had announced.",
  readers_stalled:
    "Streams and answers cut off because their reader took nothing for too long, or too much waited for it.",
  push_delivered: "Push notifications that their receiver took.",
  push_failed: "Tries of push notifications that failed.",
  push_dead: "Push configs that were given up after too many failures.",
  requests_limited: "Requests refused because an address or an owner asked for too much.",
  audit_failures: "Attempts to write the audit log that failed.",
  audit_dropped: "Audit records lost because the log could not be written for too long.",
  link_frames_dropped: "Frames of agents that dialled in that were not understood or not asked for.",
  channel_answers_dropped: "Answers of agents in chat channels that were not understood, not asked for or too many.",
  phone_notices_sent: "Notifications to phones that their platform took.",
  phone_notices_failed: "Notifications to phones that their platform refused, or did not take although tried often.",
  phone_notices_dropped: "Notifications to phones that were not sent because the task ended too late.",
  registry_searches: "Searches in the registry, and counts of what it contains.",
} as const satisfies Record<CounterName, string>;

/** Counters of this process in the Prometheus text format. */
export class Counters implements Meter {
  readonly #values = new Map<CounterName, number>();
  readonly #losses = new Map<string, number>();
  readonly #tokens = new Map<string, number>();

  count(name: CounterName, by = 1): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
  }

  countLosses(dialect: string, losses: readonly Loss[]): void {
    for (const { kind } of losses) {
      const labels = `dialect="${dialect}",kind="${kind}"`;
      this.#losses.set(labels, (this.#losses.get(labels) ?? 0) + 1);
    }
  }

  countTokens(agent: string, kind: string, count: number): void {
    const labels = `agent="${agent}",kind="${kind}"`;
    this.#tokens.set(labels, (this.#tokens.get(labels) ?? 0) + count);
  }

  render(gauges: Readonly<Record<string, { readonly help: string; readonly value: number }>>): string {
    let text = "";
    for (const name of Object.keys(COUNTER_HELP) as CounterName[]) {
      if (name === "commit_milliseconds") text += this.#renderCommits();
      else text += renderMetric(`dragoman_${name}_total`, "counter", COUNTER_HELP[name], this.#values.get(name) ?? 0);
    }
    text +=
      "# HELP dragoman_losses_total Values that a dialect could not express.\n# TYPE dragoman_losses_total counter\n";
    for (const [labels, value] of this.#losses) text += `dragoman_losses_total{${labels}} ${value}\n`;
    text +=
      "# HELP dragoman_llm_tokens_total Tokens that language models read and wrote.\n# TYPE dragoman_llm_tokens_total counter\n";
    for (const [labels, value] of this.#tokens) text += `dragoman_llm_tokens_total{${labels}} ${value}\n`;
    for (const [name, { help, value }] of Object.entries(gauges)) {
      text += renderMetric(`dragoman_${name}`, "gauge", help, value);
    }
    return text;
  }

  #renderCommits(): string {
    const name = "dragoman_commit_duration_seconds";
    const seconds = (this.#values.get("commit_milliseconds") ?? 0) / 1_000;
    const comments = `# HELP ${name} ${COUNTER_HELP.commit_milliseconds}\n# TYPE ${name} summary\n`;
    return `${comments}${name}_sum ${seconds}\n${name}_count ${this.#values.get("commits") ?? 0}\n`;
  }
}

function renderMetric(name: string, type: string, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`;
}

interface MonitoringOptions {
  readonly engine: Engine;
  readonly store: TaskStore;
  readonly counters: Counters;
  readonly audit: Pick<AuditLog, "assertWritable"> | undefined;
  readonly authentication: Pick<Authentication, "guarded">;
  readonly connections: Carriers["states"];
  /** Remote agents by name. */
  readonly upstreams: () => ReadonlyMap<string, UpstreamStatus>;
  readonly budgets: ByteBudgets;
  /** What extensions count. */
  readonly partMetrics: () => string;
  readonly isStarting: () => boolean;
}

/** Operational endpoints: liveness, readiness and metrics. Metrics are not public. */
export function createMonitoringRoutes(options: MonitoringOptions) {
  const { engine, store, counters, audit, authentication, connections } = options;
  const { upstreams, budgets, partMetrics, isStarting } = options;
  const alive = (): FullReply => jsonReply(200, '{"status":"ok"}');
  const ready = async (): Promise<FullReply> => {
    if (isStarting()) return notReady("the server is starting");
    if (engine.cluster.isCutOff) return notReady(describeStoreError(undefined));
    try {
      audit?.assertWritable();
      await store.numbers([]);
      await store.checkWritable?.();
      // The server is ready all the same: its other agents work, and a restart would not help.
      const unreachable = [...upstreams()].flatMap(([name, { reachable }]) => (reachable === false ? [name] : []));
      const detail = {
        unreachable: unreachable.length > 0 ? unreachable : undefined,
        connections: engine.cluster.isShared ? countConnections(connections()) : undefined,
      };
      return jsonReply(200, JSON.stringify({ status: "ready", ...detail }));
    } catch (error) {
      return notReady(ProtocolError.is(error) ? "the audit log cannot be written" : describeStoreError(error));
    }
  };
  const ownMetrics = (): string => {
    const { tasks, queued, streams } = engine.load;
    const rendered = counters.render({
      tasks_live: { help: "Tasks queued or running here.", value: tasks },
      tasks_queued: { help: "Tasks waiting for their agent.", value: queued },
      streams_open: { help: "Open streams.", value: streams },
      pushes_under_way: { help: "Push notifications under way.", value: engine.activePushes },
      ...connectionGauges(connections()),
      arriving_bytes: { help: "Bytes of requests that are on their way in.", value: budgets.arriving.held },
      unsent_bytes: { help: "Bytes of answers that wait to be read.", value: budgets.unsent.held },
      resident_memory_bytes: { help: "Memory of the process.", value: process.memoryUsage.rss() },
    });
    return rendered + renderUpstreams(upstreams()) + partMetrics();
  };
  const gatherMetrics = isWorker() ? shareMetrics(ownMetrics) : ownMetrics;
  const metrics = async (): Promise<FullReply> => ({
    status: 200,
    headers: { "content-type": "text/plain; version=0.0.4", "cache-control": PRIVATE_NO_STORE },
    body: await gatherMetrics(),
  });
  return new Map<string, (exchange: RequestHead) => FullReply | Promise<FullReply>>([
    ["/healthz", alive],
    ["/readyz", ready],
    ["/metrics", authentication.guarded(metrics)],
  ]);
}

/** By dialect: which connections this node has, and which another one. */
function countConnections(states: ReturnType<Carriers["states"]>) {
  const counts = [...states].flatMap(([dialect, own]) => {
    const standby = own.filter((state) => state === "standby").length;
    return own.length === 0 ? [] : [[dialect, { held: own.length - standby, standby }] as const];
  });
  return Object.fromEntries(counts);
}

/** Named after the dialect: `xiaoyi_links`, `a2a_lite_connections`. */
function connectionGauges(states: ReturnType<Carriers["states"]>) {
  const gauges = [...states].flatMap(([dialect, own]) => {
    const name = `${dialect.replaceAll("-", "_")}${dialect.endsWith("link") ? "s" : "_connections"}`;
    const up = own.filter((state) => state === "up").length;
    const standby = own.filter((state) => state === "standby").length;
    return [
      [name, { help: `Connections of ${dialect} that are configured.`, value: own.length }],
      [`${name}_up`, { help: `Connections of ${dialect} that are open.`, value: up }],
      [`${name}_standby`, { help: `Connections of ${dialect} that another node has.`, value: standby }],
    ] as const;
  });
  return Object.fromEntries(gauges);
}

/** One that was never called is not known to be up or down. */
function renderUpstreams(statuses: ReadonlyMap<string, UpstreamStatus>): string {
  const all = [...statuses].map(([name, status]) => ({
    ...status,
    labels: `agent="${name}",upstream="${status.url}"`,
  }));
  if (all.length === 0) return "";
  const known = all.filter(({ reachable }) => reachable !== undefined);
  return [
    "# HELP dragoman_upstream_up Whether the upstream of a remote agent could be reached when last tried.",
    "# TYPE dragoman_upstream_up gauge",
    ...known.map(({ labels, reachable }) => `dragoman_upstream_up{${labels}} ${reachable === true ? 1 : 0}`),
    "# HELP dragoman_upstream_failures_total Calls that failed because the upstream could not be reached.",
    "# TYPE dragoman_upstream_failures_total counter",
    ...all.map(({ failures, labels }) => `dragoman_upstream_failures_total{${labels}} ${failures}`),
    "",
  ].join("\n");
}

/** Public, so the reason is one of a fixed set. */
function notReady(reason: string): FullReply {
  return jsonReply(503, JSON.stringify({ status: "not ready", reason }));
}
