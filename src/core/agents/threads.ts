import { readFileSync, readlinkSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { CODE_EXTENSION, ownModule } from "./own-files.ts";

/**
 * Detects a thread whose event loop is blocked, by the CPU time that the thread used since its last beat and not by the
 * clock: a process that is suspended, paused in a debugger or on a busy machine uses none, an endless loop uses all.
 * Call the function periodically with the number of beats so far.
 */
export function createStallDetector(limitMs: number, cpuMs: () => number): (beats: number) => boolean {
  let lastBeats = -1;
  let since = 0;
  return (beats) => {
    const used = cpuMs();
    if (beats !== lastBeats) {
      lastBeats = beats;
      since = used;
      return false;
    }
    return used - since >= limitMs;
  };
}

const NANOSECONDS_PER_MS = 1e6;

/** CPU time of one thread of this process in milliseconds; that of all threads if it is not available per thread. */
export function threadCpuMs(thread: string): number {
  try {
    const [ran] = readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ");
    if (Number(ran) > 0) return Number(ran) / NANOSECONDS_PER_MS;
  } catch {
    // Not Linux, or the thread has exited.
  }
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Id of the current thread in the operating system; empty if not available. */
export function currentThreadId(): string {
  try {
    return readlinkSync("/proc/thread-self").split("/").at(-1) ?? "";
  } catch {
    return "";
  }
}

/** Node does not load TypeScript in worker threads, so sources are loaded like agent modules. */
const LOAD_SOURCE = `const { workerData } = require("node:worker_threads");
import(workerData.loader).then(({ createJiti }) => createJiti(workerData.source).import(workerData.source));`;

/** Starts a worker thread with a module of this package: its path relative to `src`, without extension. */
export function startThread(module: string, options: Omit<WorkerOptions, "eval"> & { workerData: object }): Worker {
  const file = pathToFileURL(ownModule(module));
  if (CODE_EXTENSION === ".js") return new Worker(file, options);
  const workerData = { ...options.workerData, loader: import.meta.resolve("jiti"), source: file.href };
  return new Worker(LOAD_SOURCE, { ...options, eval: true, workerData });
}
