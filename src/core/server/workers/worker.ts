/** The side of a process that serves beside others on the same ports. */

import cluster from "node:cluster";
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from "./messages.ts";

export function isWorker(): boolean {
  return process.env[WORKER_VARIABLE] !== undefined && process.send !== undefined;
}

/**
 * Tells the process that started this one that it listens. From now on it ends by itself when that one is gone: `node:cluster`
 * would exit without letting running tasks finish. Before, that is right, because no one answers its request for a port any more.
 */
export function reportListening(banner: string): void {
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  send({ kind: "listening", banner });
}

/** Called when the worker is to stop, and when the process that started it is gone. Returns how to end that. */
export function onStop(stop: (reason: string) => void): () => void {
  const onMessage = (message: ToWorker) => {
    if (message.kind === "stop") stop(message.reason);
  };
  const onDisconnect = () => stop("the process that started this worker is gone");
  process.on("message", onMessage);
  process.on("disconnect", onDisconnect);
  return () => {
    process.off("message", onMessage);
    process.off("disconnect", onDisconnect);
  };
}

/** Returns what gives the metrics of all workers, and answers those that ask for those of this one. */
export function shareMetrics(own: () => string): () => Promise<string> {
  const waiting = new Map<number, (metrics: string) => void>();
  let lastId = 0;
  process.once("disconnect", () => {
    for (const resolve of waiting.values()) resolve(own());
  });
  process.on("message", (message: ToWorker) => {
    if (message.kind === "collect") send({ kind: "collected", id: message.id, metrics: own() });
    else if (message.kind === "gathered") waiting.get(message.id)?.(message.metrics);
  });
  return async () => {
    if (!process.connected) return own();
    const id = ++lastId;
    try {
      return await new Promise<string>((resolve) => {
        waiting.set(id, resolve);
        send({ kind: "gather", id });
      });
    } finally {
      waiting.delete(id);
    }
  };
}

function send(message: FromWorker): void {
  // The process that started this one may end at any time; `disconnect` says so.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
