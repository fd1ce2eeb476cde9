import type { LogEntry } from "../../model/event.ts";
import { fold, TaskFold } from "../../model/fold.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Task, TaskState, TaskStatus } from "../../model/task.ts";
import type { Append, CursorRead, Snapshot, SnapshotOptions, Submit, TaskHead } from "../contract.ts";
import { type LeaseState, leaseAfterAppend, leaseAtSubmit } from "../rules.ts";
import { encodeSegment } from "../segment.ts";
import type { ScopeIndex } from "./scope-index.ts";
import type { ListEntry } from "./sorted-list.ts";

const NO_ENTRIES: readonly LogEntry[] = [];

/** Below this a log is folded again for each reader; above, the fold is kept and only what is new is applied. */
const LONG_LOG = 32;

/** One task as the memory store keeps it: the entries as they were written, folded only when it is read. */
export class TaskRecord {
  readonly scope: ScopeIndex;
  readonly id: string;
  readonly contextId: string;
  readonly dialect: string;
  readonly createdAt: number;
  readonly idempotencyKey: string | undefined;
  /** Of meaning once the task has ended. */
  endedAt = 0;
  status: TaskStatus;
  number: number;
  floor = 0;
  fence: number;
  node: string | undefined;
  turn: number;
  attempt: number;
  cancelRequested = false;
  /** Undefined once the task is gone. */
  listEntry: ListEntry | undefined;
  /** Positions that it has left and that are kept for lists. */
  pastEntries: ListEntry[] | undefined;
  memory: Map<string, string> | undefined;
  /** What the task took up when that was last counted. */
  bytes = 0;

  #entries: readonly LogEntry[];
  /** The entries of a submit belong to its writer; the first append makes them ours. */
  #ownsEntries = false;
  #compacted: Task | undefined;
  #fold: TaskFold | undefined;
  /** Undefined while it is that of the first entry. */
  #changedMetadata: JsonObject | undefined;
  /** Entries that are in `bytes`. */
  #counted = 0;
  /** Bytes of the log, roughly, as of the first `#measured` entries. */
  #size = 0;
  #measured = 0;

  constructor(scope: ScopeIndex, write: Submit, createdAt: number) {
    const lease = leaseAtSubmit(write);
    this.scope = scope;
    this.id = write.id;
    this.contextId = write.contextId;
    this.dialect = write.dialect;
    this.createdAt = createdAt;
    this.idempotencyKey = write.idempotency?.key;
    this.status = write.status;
    this.number = write.entries.length;
    this.fence = lease.fence;
    this.node = lease.node;
    this.turn = lease.turn;
    this.attempt = lease.attempt;
    this.listEntry = undefined;
    this.pastEntries = undefined;
    this.memory = undefined;
    this.#entries = write.entries;
    this.#changedMetadata = write.metadata;
  }

  get state(): TaskState {
    return this.status.state;
  }

  append(write: Append): void {
    this.setLease(leaseAfterAppend(this, write));
    if (write.status !== undefined) this.status = write.status;
    if (write.metadata !== undefined) this.#changedMetadata = write.metadata;
    if (write.entries.length === 0) return;
    if (this.#entries.length < LONG_LOG) {
      // An array that grows by pushing keeps room for more, which most tasks never need.
      this.#entries = this.#entries.concat(write.entries);
      this.#ownsEntries = true;
    } else {
      if (!this.#ownsEntries) this.#entries = this.#entries.slice();
      this.#ownsEntries = true;
      const entries = this.#entries as LogEntry[];
      for (const entry of write.entries) entries.push(entry);
    }
    this.number = this.#entries.length;
  }

  setLease(lease: LeaseState): void {
    this.fence = lease.fence;
    this.node = lease.node;
    this.turn = lease.turn;
    this.attempt = lease.attempt;
  }

  head(): TaskHead {
    return {
      agent: this.scope.agent,
      tenant: this.scope.tenant,
      owner: this.scope.owner,
      id: this.id,
      contextId: this.contextId,
      status: this.status,
      number: this.number,
      floor: this.floor,
      fence: this.fence,
      node: this.node,
      turn: this.turn,
      attempt: this.attempt,
      cancelRequested: this.cancelRequested,
      bytes: this.#measure(),
      dialect: this.dialect,
      createdAt: this.createdAt,
    };
  }

  read(after: number, limit: number): CursorRead {
    if (after < this.floor) return { kind: "compacted", floor: this.floor };
    const from = after - this.floor;
    return { kind: "entries", entries: this.#entries.slice(from, from + Math.max(limit, 1)) };
  }

  snapshot(options: SnapshotOptions): Snapshot | undefined {
    const { at, scope } = options;
    if (scope !== undefined && !this.scope.isScope(scope)) return undefined;
    if (at === undefined || at >= this.number || at < this.floor) {
      return { task: this.toTask(options), number: this.number };
    }
    const number = Math.max(at, 1);
    const folded = fold(this.#entries.slice(0, number));
    const task = folded.toTask({ historyLength: options.history, artifacts: options.artifacts });
    return { task, number };
  }

  toTask(options: { readonly history: number; readonly artifacts: boolean }): Task {
    const { history, artifacts } = options;
    if (this.#compacted !== undefined) return selectParts(this.#compacted, history, artifacts);
    if (history <= 0 && !artifacts) {
      const metadata = this.#metadata();
      return { id: this.id, contextId: this.contextId, status: this.status, metadata };
    }
    return this.#folded().toTask({ historyLength: history, artifacts });
  }

  #measure(): number {
    for (; this.#measured < this.#entries.length; this.#measured++) {
      this.#size += (this.#entries[this.#measured] as LogEntry).size;
    }
    return this.#size;
  }

  /** Counts what has come since the last time. */
  countBytes(): void {
    if (this.#compacted !== undefined) this.bytes = Buffer.byteLength(JSON.stringify(this.#compacted));
    else {
      for (; this.#counted < this.#entries.length; this.#counted++) {
        this.bytes += Buffer.byteLength(encodeSegment([this.#entries[this.#counted] as LogEntry]));
      }
    }
  }

  compact(): void {
    this.#compacted = this.#folded().toTask();
    this.#fold = undefined;
    this.#entries = NO_ENTRIES;
    this.floor = this.number;
  }

  #metadata(): JsonObject | undefined {
    if (this.#changedMetadata !== undefined) return this.#changedMetadata;
    const event = this.#entries[0]?.event;
    return event !== undefined && "task" in event ? event.task.metadata : undefined;
  }

  #folded(): TaskFold {
    const known = this.#fold ?? new TaskFold();
    for (let index = known.number; index < this.#entries.length; index++) known.apply(this.#entries[index] as LogEntry);
    if (this.#entries.length > LONG_LOG) this.#fold = known;
    return known;
  }
}

/** A compacted task with only as much of it as was asked for. */
function selectParts(task: Task, history: number, artifacts: boolean): Task {
  const { history: allHistory = [], artifacts: allArtifacts, ...rest } = task;
  const newest = history <= 0 ? [] : allHistory.slice(-history);
  return {
    ...rest,
    artifacts: artifacts ? allArtifacts : undefined,
    history: newest.length > 0 ? newest : undefined,
  };
}

interface OwnerUsage {
  bytes: number;
  tasks: number;
  /** Tasks that changed since they were counted. */
  readonly changed: Set<TaskRecord>;
}

/**
 * What owners' tasks take up. Counting makes text of events, which may never be needed here otherwise: so nothing is kept
 * before the first query, and then only what has come since the last question is counted.
 */
export class OwnerUsageCounter {
  #owners: Map<string, OwnerUsage> | undefined;

  addTask(record: TaskRecord): void {
    if (this.#owners !== undefined) addToOwner(this.#owners, record);
  }

  markChanged(record: TaskRecord): void {
    this.#owners?.get(record.scope.owner)?.changed.add(record);
  }

  removeTask(record: TaskRecord): void {
    const { owner } = record.scope;
    const usage = this.#owners?.get(owner);
    if (usage === undefined) return;
    usage.changed.delete(record);
    usage.bytes -= record.bytes;
    usage.tasks--;
    if (usage.tasks === 0) this.#owners?.delete(owner);
  }

  /** `tasks` are all there are. */
  bytesOf(owner: string, tasks: Iterable<TaskRecord>): number {
    if (this.#owners === undefined) {
      this.#owners = new Map();
      for (const record of tasks) addToOwner(this.#owners, record);
    }
    const usage = this.#owners.get(owner);
    if (usage === undefined) return 0;
    for (const record of usage.changed) {
      usage.bytes -= record.bytes;
      record.countBytes();
      usage.bytes += record.bytes;
    }
    usage.changed.clear();
    return usage.bytes;
  }
}

function addToOwner(owners: Map<string, OwnerUsage>, record: TaskRecord): void {
  const { owner } = record.scope;
  let usage = owners.get(owner);
  if (usage === undefined) {
    usage = { bytes: 0, tasks: 0, changed: new Set() };
    owners.set(owner, usage);
  }
  usage.tasks++;
  usage.changed.add(record);
}
