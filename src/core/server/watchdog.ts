import inspector from "node:inspector";
import type { Worker } from "node:worker_threads";
import { currentThreadId, startThread } from "../agents/threads.ts";
import type { Log, RunMonitor } from "../model/ports.ts";

/** Exit code if one agent blocks all others. */
export const STALLED_EXIT_CODE = 70;

interface WatchdogOptions {
  /** CPU time after which the main thread counts as stalled. */
  readonly limitMs: number;
  /** Names of agents by module file, to attribute a stack to an agent. */
  readonly agentFiles: readonly (readonly [file: string, agent: string])[];
  /** Format of the last log line. */
  readonly form: "json" | "pretty" | "silent";
  readonly log: Log;
}

export interface WatchdogData extends Omit<WatchdogOptions, "log"> {
  readonly shared: SharedArrayBuffer;
  /** The main thread's id in the operating system. */
  readonly thread: string;
  readonly exitCode: number;
}

/** Indexes of 32-bit cells in the shared memory; the text of the note follows them. */
export const CELL = { beats: 0, running: 1, noteLength: 2, debugged: 3 } as const;
export const NOTE_OFFSET = 16;
const MAX_NOTE_BYTES = 1_024;
const BEAT_MS = 250;

export interface Watchdog {
  readonly monitor: RunMonitor;
  /** To be called once the server listens: start-up may take longer than the limit. */
  start(): void;
  stop(): void;
}

/**
 * Watches the main thread from another thread. An endless loop in an agent blocks everything, including timeouts and
 * signals; the watchdog then logs whose code ran and ends the process, so that its supervisor restarts it and tasks are
 * recovered as after any crash.
 */
export function createWatchdog({ log, ...options }: WatchdogOptions): Watchdog {
  const shared = new SharedArrayBuffer(NOTE_OFFSET + MAX_NOTE_BYTES);
  const cells = new Int32Array(shared, 0, NOTE_OFFSET / 4);
  const note = Buffer.from(shared, NOTE_OFFSET);
  const beat = () => {
    Atomics.add(cells, CELL.beats, 1);
    Atomics.store(cells, CELL.debugged, inspector.url() === undefined ? 0 : 1);
  };
  let timer: NodeJS.Timeout | undefined;
  let worker: Worker | undefined;
  let noted = "";
  return {
    monitor: {
      enter(agent, task) {
        if (task !== noted) {
          noted = task;
          cells[CELL.noteLength] = note.write(`${agent}\n${task}`);
        }
        cells[CELL.running] = 1;
      },
      leave() {
        cells[CELL.running] = 0;
      },
    },
    start() {
      beat();
      timer = setInterval(beat, BEAT_MS).unref();
      const workerData: WatchdogData = { ...options, shared, thread: currentThreadId(), exitCode: STALLED_EXIT_CODE };
      worker = startThread("core/server/watchdog-thread", { workerData, name: "watchdog" });
      worker.unref();
      worker.on("error", (error) => log.warn({ err: error }, "The watchdog failed; endless loops are not noticed"));
    },
    stop() {
      clearInterval(timer);
      void worker?.terminate();
    },
  };
}
