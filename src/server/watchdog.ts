import inspector from "node:inspector";
import type { Worker } from "node:worker_threads";
import { currentThreadId, startThread } from "../agents/threads.ts";
import type { Log, RunMonitor } from "../model/ports.ts";

/** How the process ends when one agent keeps all others from running. */
export const STALLED_EXIT_CODE = 70;

interface WatchdogOptions {
  /** CPU time after which the thread that serves counts as stalled. */
  readonly limitMs: number;
  /** Names of agents by the files of their modules, to recognise in a stack whose code runs. */
  readonly agentFiles: readonly (readonly [file: string, agent: string])[];
  /** How the last line of the log is written. */
  readonly form: "json" | "pretty" | "silent";
  readonly log: Log;
}

export interface WatchdogData extends Omit<WatchdogOptions, "log"> {
  readonly shared: SharedArrayBuffer;
  /** The thread that serves, as the operating system calls it. */
  readonly thread: string;
  readonly exitCode: number;
}

/** Places in the shared memory, as 32-bit numbers; the text of the note follows them. */
export const CELL = { beats: 0, running: 1, noteLength: 2, debugged: 3 } as const;
export const NOTE_OFFSET = 16;
const MAX_NOTE_BYTES = 1_024;
const BEAT_MS = 250;

export interface Watchdog {
  readonly monitor: RunMonitor;
  /** To be called once the server listens: what it does before may take its time. */
  start(): void;
  stop(): void;
}

/**
 * Watches the thread that serves from another one. An endless loop in an agent stops everything, timeouts and signals
 * included; the watchdog then writes whose code ran and ends the process, so that whatever supervises it starts it again
 * and tasks are recovered as after any crash.
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
      worker = startThread("server/watchdog-thread", { workerData, name: "watchdog" });
      worker.unref();
      worker.on("error", (error) => log.warn({ err: error }, "The watchdog failed; endless loops are not noticed"));
    },
    stop() {
      clearInterval(timer);
      void worker?.terminate();
    },
  };
}
