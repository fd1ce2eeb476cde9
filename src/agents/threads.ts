import { readFileSync, readlinkSync } from "node:fs";
import { extname } from "node:path";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Whether a thread whose event loop should beat has stopped to turn. Judged by the CPU time that the thread used since
 * its last beat and not by the clock: a process that is suspended, stands in a debugger or has to share a busy machine
 * uses none, an endless loop uses all.
 */
export class StallDetector {
  readonly #limitMs: number;
  readonly #cpuMs: () => number;
  #beats = -1;
  #since = 0;

  constructor(limitMs: number, cpuMs: () => number) {
    this.#limitMs = limitMs;
    this.#cpuMs = cpuMs;
  }

  /** To be asked again and again with the number of beats so far. */
  isStalled(beats: number): boolean {
    const used = this.#cpuMs();
    if (beats !== this.#beats) {
      this.#beats = beats;
      this.#since = used;
      return false;
    }
    return used - this.#since >= this.#limitMs;
  }
}

const NANOSECONDS_PER_MS = 1e6;

/** CPU time of one thread of this process in milliseconds. Where only that of all threads is known, it stands for it. */
export function threadCpuMs(thread: string): number {
  try {
    const [ran] = readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ");
    if (Number(ran) > 0) return Number(ran) / NANOSECONDS_PER_MS;
  } catch {
    // Not Linux, or a thread that is gone.
  }
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** What the operating system calls the thread that asks; empty where that is not known. */
export function currentThreadId(): string {
  try {
    return readlinkSync("/proc/thread-self").split("/").at(-1) ?? "";
  } catch {
    return "";
  }
}

/** Node reads no TypeScript in a thread of its own, so sources are loaded there as modules of agents are. */
const LOAD_SOURCE = `const { workerData } = require("node:worker_threads");
import(workerData.loader).then(({ createJiti }) => createJiti(workerData.source).import(workerData.source));`;

/** Starts a thread with a module of this package, named by its place below `src` without its extension. */
export function startThread(module: string, options: Omit<WorkerOptions, "eval"> & { workerData: object }): Worker {
  const extension = extname(import.meta.url);
  const file = new URL(`../${module}${extension}`, import.meta.url);
  if (extension === ".js") return new Worker(file, options);
  const workerData = { ...options.workerData, loader: import.meta.resolve("jiti"), source: file.href };
  return new Worker(LOAD_SOURCE, { ...options, eval: true, workerData });
}
