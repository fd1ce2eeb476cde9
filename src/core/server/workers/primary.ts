/** The process that holds the ports: starts those that serve, and replaces one that ends. */

import cluster, { type Worker } from "node:cluster";
import type { Log } from "../../model/ports.ts";
import { mergeMetrics } from "./merge-metrics.ts";
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from "./messages.ts";

export interface Workers {
  /**
   * Starts this program again so many times. The first one listens before the others start: what keeps it from that is reported once.
   * Resolves with what the first one printed when all listen, or with undefined if they are stopped before. Rejects when all have ended.
   */
  start(): Promise<string | undefined>;
  /** Lets all of them finish what they do, and does not replace them. */
  stop(reason: string): void;
  /** Ends all of them at once. */
  kill(): void;
  /** Resolves when all have ended. */
  readonly closed: Promise<void>;
}

/** A worker ended before it listened; it has printed why. */
export class WorkerFailedError extends Error {
  override readonly name = "WorkerFailedError";
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`A worker ended with ${exitCode} before it listened.`);
    this.exitCode = exitCode;
  }
}

const FIRST_RESTART_MS = 500;
const MAX_RESTART_MS = 30_000;
/** One that ran for this long failed for a new reason. */
const STEADY_MS = 60_000;
/** A worker whose event loop is blocked answers later; the metrics are then those of the others. */
const COLLECT_MS = 1_000;

export function createWorkers(count: number, log: Log): Workers {
  let stopping = false;
  let stopReason = "";
  let restartMs = FIRST_RESTART_MS;
  let resolveClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    resolveClosed = resolve;
  });
  const timers = new Set<NodeJS.Timeout>();
  /** Not `cluster.workers`, which may still have one that has ended. */
  const running = new Set<Worker>();
  const collect = createCollector();

  function fork(): Promise<string> {
    const worker = cluster.fork({ [WORKER_VARIABLE]: "1" });
    running.add(worker);
    const startedAt = performance.now();
    let listens = false;
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind !== "listening") return collect(worker, message);
        listens = true;
        resolve(message.banner);
        // While it started it had no listener for this.
        if (stopping) send(worker, { kind: "stop", reason: stopReason });
      });
      worker.once("exit", (code, signal) => {
        running.delete(worker);
        if (!listens) reject(new WorkerFailedError(code || 1));
        if (stopping && running.size === 0) resolveClosed();
        if (stopping || !listens) return;
        if (performance.now() - startedAt > STEADY_MS) restartMs = FIRST_RESTART_MS;
        log.error({ pid: worker.process.pid, code, signal, restartMs }, "A worker ended; another one is started.");
        restartLater();
      });
    });
  }

  function restartLater(): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      fork().catch((error: unknown) => {
        log.error({ err: error, restartMs }, "A worker could not be started; it is tried again.");
        if (!stopping) restartLater();
      });
    }, restartMs);
    timers.add(timer);
    restartMs = Math.min(restartMs * 2, MAX_RESTART_MS);
  }

  function stop(reason: string): void {
    stopping = true;
    stopReason = reason;
    for (const timer of timers) clearTimeout(timer);
    if (running.size === 0) resolveClosed();
    for (const worker of running) send(worker, { kind: "stop", reason });
  }

  async function start(): Promise<string | undefined> {
    try {
      const banner = stopping ? undefined : await fork();
      if (!stopping) await Promise.all(Array.from({ length: count - 1 }, fork));
      return stopping ? undefined : banner;
    } catch (error) {
      const wasStopping = stopping;
      stop("another worker could not be started");
      await closed;
      if (wasStopping) return undefined;
      throw error;
    }
  }

  const kill = () => {
    for (const worker of running) worker.process.kill("SIGKILL");
  };

  return { start, stop, kill, closed };
}

/** Answers a worker that asks for the metrics of all. */
function createCollector(): (worker: Worker, message: Exclude<FromWorker, { kind: "listening" }>) => void {
  const collecting = new Map<number, (metrics: string) => void>();
  let lastId = 0;
  return (asking, message) => {
    if (message.kind === "collected") return collecting.get(message.id)?.(message.metrics);
    const id = ++lastId;
    const asked = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected() === true);
    const texts: string[] = [];
    const finish = () => {
      clearTimeout(timer);
      collecting.delete(id);
      send(asking, { kind: "gathered", id: message.id, metrics: mergeMetrics(texts) });
    };
    const timer = setTimeout(finish, COLLECT_MS);
    collecting.set(id, (metrics) => {
      texts.push(metrics);
      if (texts.length === asked.length) finish();
    });
    for (const worker of asked) if (worker !== undefined) send(worker, { kind: "collect", id });
  };
}

function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {});
}
