import {
  type Clock,
  type IdGenerator,
  type Log,
  type Meter,
  NO_METER,
  NO_MONITOR,
  type RunMonitor,
  SILENT_LOG,
} from "../model/ports.ts";
import type { TaskStore } from "../store/contract.ts";
import type { PushAttempt, PushSender } from "./deliveries/push-sender.ts";
import { NodeLease } from "./node-lease.ts";
import { ReportedMeter } from "./node-report.ts";
import { StoreReturn } from "./store-return.ts";

export interface EngineLimits {
  /** Newest messages of a task that are kept at hand and returned, at most. */
  readonly historyPage: number;
  /** Characters of the tasks of a page, roughly; one that is longer by itself makes a page of its own. */
  readonly page: number;
  /** Tasks of one owner that are queued or running here at the same time. */
  readonly tasksPerOwner: number;
  /**
   * Bytes of the messages in those tasks, history included. An owner that has no task under way may always start one:
   * otherwise a task with a long history could never be continued.
   */
  readonly messageBytesPerOwner: number;
  /** Streams one owner may hold open here. */
  readonly streamsPerOwner: number;
  /** Streams that may be open from one address. */
  readonly streamsPerAddress: number;
  /** Bytes of an owner's tasks in the store; above it the owner starts nothing new and registers no webhook. Absent: no limit. */
  readonly storedBytesPerOwner: number | undefined;
  /** Calls from agent to agent that may lead to a request. */
  readonly hops: number;
  /** Tasks that may wait for one agent. */
  readonly queue: number;
  /** A task with more uncommitted events than this has its text chunks merged. */
  readonly mergeAfter: number;
  /** A run with this many uncommitted events waits for the store. */
  readonly pendingEvents: number;
  /** Characters of an id that a caller chooses, and of a tenant: they are repeated in every event. */
  readonly id: number;
  /** Characters of one part, from callers and from agents. */
  readonly part: number;
  /** Bytes of one file in a message. Default: that of `part`. */
  readonly file: number;
  /** Media types that files in messages may have, as `type/subtype` or `type/*`, whichever agent they are for. Absent: any. */
  readonly mediaTypes: readonly string[] | undefined;
  /** Bytes that are kept of one task, its messages, names and metadata included, roughly; a run that adds more fails. */
  readonly task: number;
  /** How often a crash of the process is forgiven to one task. */
  readonly attempts: number;
  /** Push notification configs of one task. */
  readonly pushConfigs: number;
  /** Attempts at one event before a delivery is given up. */
  readonly pushAttempts: number;
  /** Push notifications in flight at the same time. */
  readonly pushConcurrency: number;
  /** Push notifications in flight to one host. */
  readonly pushPerHost: number;
}

export interface EngineTimes {
  /** An agent that ignores a cancellation is cut off after this. */
  readonly cancelGraceMs: number;
  /** A node silent for this long has lost its leases. */
  readonly leaseMs: number;
  /** Readers look for missed wake-ups this often. */
  readonly sweepMs: number;
  /** A stream shows its task after this, even if the agent has given no sign yet. */
  readonly showTaskAfterMs: number;
  /** How long a repeated send is recognised. */
  readonly idempotencyMs: number;
  /** Logs of tasks that ended this long ago are reduced to their snapshot. */
  readonly compactAfterMs: number;
  /** Tasks that ended this long ago are deleted; absent: never. */
  readonly pruneAfterMs: number | undefined;
  /** Old tasks are compacted and pruned this often. */
  readonly housekeepingMs: number;
  /** Longest time of one try of a push notification. */
  readonly pushTimeoutMs: number;
  /** At most this long after its first failure a push notification is tried again; then twice as long each time. */
  readonly pushRetryMs: number;
  /** Maximum time between two attempts of a push notification. */
  readonly longestPushRetryMs: number;
  /** Push notifications that no commit of this process announced are looked for this often. */
  readonly pushSweepMs: number;
}

export interface EngineOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  /** Milliseconds since any moment, of a clock that is never set. Default: those of `clock`. */
  readonly monotonic?: () => number;
  readonly ids: IdGenerator;
  readonly log?: Log;
  readonly meter?: Meter;
  readonly monitor?: RunMonitor;
  readonly limits?: Partial<EngineLimits>;
  readonly times?: Partial<EngineTimes>;
  /** Bytes that are kept of all tasks under way here, roughly; beyond it the large ones fail. Default: no limit. */
  readonly liveBytes?: number;
  /** False refuses push notification configs. Default: true. */
  readonly push?: boolean;
  /** Sends push notifications; without one they wait for an engine that has one. */
  readonly pushSender?: PushSender;
  /** Called with the result of every attempt to deliver a push notification. */
  readonly onPushAttempt?: (tried: PushAttempt) => void;
  /** From 0 up to but not 1, for what must not happen everywhere at once. */
  readonly random?: () => number;
  /** Callers are those who run the server: if a task fails by an error, its status refers to the log. Default: false. */
  readonly mentionLog?: boolean;
  /** By what an agent is known among those a request came through: its URL where it has one. Default: its name. */
  readonly toAgentId?: (agent: string) => string;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export const DEFAULT_LIMITS: EngineLimits = {
  historyPage: 200,
  page: 16 * 1024 * 1024,
  tasksPerOwner: 10_000,
  messageBytesPerOwner: 256 * 1024 * 1024,
  streamsPerOwner: 20_000,
  streamsPerAddress: 20_000,
  storedBytesPerOwner: undefined,
  hops: 8,
  queue: 10_000,
  mergeAfter: 64,
  pendingEvents: 256,
  id: 1_024,
  part: 16 * 1024 * 1024,
  file: 16 * 1024 * 1024,
  mediaTypes: undefined,
  task: 256 * 1024 * 1024,
  attempts: 5,
  pushConfigs: 20,
  pushAttempts: 12,
  pushConcurrency: 128,
  pushPerHost: 16,
};

export const DEFAULT_TIMES: EngineTimes = {
  cancelGraceMs: 5_000,
  leaseMs: 15_000,
  sweepMs: 1_000,
  showTaskAfterMs: 1_000,
  idempotencyMs: DAY,
  compactAfterMs: DAY,
  pruneAfterMs: undefined,
  housekeepingMs: MINUTE,
  pushTimeoutMs: 10_000,
  pushRetryMs: 5_000,
  longestPushRetryMs: 60 * MINUTE,
  pushSweepMs: 5_000,
};

/** What every part of the engine is given: the world, the store and the bounds. */
export interface EngineContext {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly log: Log;
  readonly meter: ReportedMeter;
  readonly monitor: RunMonitor;
  readonly limits: EngineLimits;
  readonly times: EngineTimes;
  readonly liveBytes: number;
  readonly push: boolean;
  readonly random: () => number;
  readonly pushSender: PushSender | undefined;
  readonly onPushAttempt: (tried: PushAttempt) => void;
  readonly mentionLog: boolean;
  readonly toAgentId: (agent: string) => string;
  readonly storeReturn: StoreReturn;
  /** This life of this process, as the store's leases name it. */
  readonly node: string;
  readonly lease: NodeLease;
}

export function toEngineContext(options: EngineOptions): EngineContext {
  const { clock, monotonic = () => clock.now() } = options;
  const times = { ...DEFAULT_TIMES, ...options.times };
  const { store } = options;
  return {
    store,
    storeReturn: new StoreReturn({ store, clock, everyMs: times.sweepMs }),
    clock,
    ids: options.ids,
    log: options.log ?? SILENT_LOG,
    meter: new ReportedMeter(options.meter ?? NO_METER),
    monitor: options.monitor ?? NO_MONITOR,
    limits: toLimits(options.limits),
    times,
    liveBytes: options.liveBytes ?? Number.POSITIVE_INFINITY,
    push: options.push ?? true,
    random: options.random ?? (() => 0.5),
    pushSender: options.pushSender,
    onPushAttempt: options.onPushAttempt ?? (() => {}),
    mentionLog: options.mentionLog ?? false,
    toAgentId: options.toAgentId ?? ((agent) => agent),
    node: options.ids.node(),
    lease: new NodeLease(options.store.shared === true, times.leaseMs, monotonic),
  };
}

function toLimits(given: Partial<EngineLimits> = {}): EngineLimits {
  const limits = { ...DEFAULT_LIMITS, ...given };
  return { ...limits, file: given.file ?? limits.part };
}
