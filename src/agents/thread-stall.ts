import { readFileSync, readlinkSync } from "node:fs";

/**
 * Whether a thread whose event loop should beat has stopped to turn. Judged by the CPU time that the thread used since
 * its last beat and not by the clock: a process that is suspended, stands in a debugger or has to share a busy machine
 * uses none, an endless loop uses all.
 */
export class ThreadStall {
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

const NANOSECONDS = 1e6;

/** CPU time of one thread of this process in milliseconds. Where only that of all threads is known, it stands for it. */
export function cpuMsOf(thread: string): number {
  try {
    const [ran] = readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ");
    if (Number(ran) > 0) return Number(ran) / NANOSECONDS;
  } catch {
    // Not Linux, or a thread that is gone.
  }
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** What the operating system calls the thread that asks; empty where that is not known. */
export function ownThread(): string {
  try {
    return readlinkSync("/proc/thread-self").split("/").at(-1) ?? "";
  } catch {
    return "";
  }
}
