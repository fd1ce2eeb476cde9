/** What the inside needs of the world, injected so that tests own it. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Run later; the returned function cancels. A pending timer never keeps the process alive. */
  after(milliseconds: number, run: () => void): () => void;
}

/** Timers cannot be set further ahead: Node's fire at once if they are. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export interface IdGenerator {
  task(): string;
  context(): string;
  message(): string;
  artifact(): string;
  pushConfig(): string;
  /** One life of one process. */
  node(): string;
}

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** Counters by name; a closed list keeps names in one place. */
export type CounterName =
  | "events_dropped_after_terminal"
  | "events_merged"
  | "commits"
  | "events_written"
  | "commit_milliseconds"
  | "runs_fenced"
  | "runs_resumed"
  | "runs_failed_by_crash"
  | "wakeups_missed"
  | "readers_stalled"
  | "push_delivered"
  | "push_failed"
  | "push_dead"
  | "requests_limited"
  | "audit_failures"
  | "audit_dropped"
  | "link_frames_dropped"
  | "channel_answers_dropped"
  | "phone_notices_sent"
  | "phone_notices_failed"
  | "phone_notices_dropped"
  | "registry_searches";

export interface Meter {
  count(name: CounterName, by?: number): void;
}

/** Notes whose code is about to run in this thread, so that a watchdog in another one can name it. */
export interface RunMonitor {
  enter(agent: string, task: string): void;
  /** It has returned; what it waits for is done by others. */
  leave(): void;
}

export const NO_MONITOR: RunMonitor = { enter() {}, leave() {} };
export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };
export const NO_METER: Meter = { count() {} };
