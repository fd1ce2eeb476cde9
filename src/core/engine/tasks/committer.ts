import { ProtocolError } from "../../model/errors.ts";
import {
  type AcceptedWrite,
  type DeliveryClaim,
  describeStoreError,
  registersDeliveries,
  type Write,
  type WriteResult,
} from "../../store/contract.ts";
import { leaseLostError } from "../node-lease.ts";
import type { EngineContext } from "../options.ts";
import type { LiveTask } from "./live-task.ts";

export type RefusedWrite = Extract<WriteResult, { ok: false }>;

/** What a write did to deliveries: those of these routes may be due, and these were written as held by this node. */
type DeliveryListener = (due: readonly string[], held: readonly DeliveryClaim[]) => void;

interface SingleWrite {
  readonly write: Write;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: Error) => void;
}

const RETRY_DELAYS_MS = [50, 250, 1_000, 4_000];
/** In a store that several nodes share, where a run is worth waiting for as long as no other node can have its task. */
const MAX_SHARED_DELAY_MS = 1_000;
/** Callers do not wait longer for a store that does not take writes. */
const PATIENCE_MS = 5_000;
/** A store that fails for longer is taken to be away. */
const BLIP_MS = 1_000;

/**
 * Group commit: everything that wants to be written in one turn of the event loop goes to the store in one call, with
 * one such call under way at a time and at most one write per task or record in it.
 */
export class Committer {
  readonly #context: EngineContext;
  #dirty = new Set<LiveTask>();
  #singles: SingleWrite[] = [];
  /** Left out of the group before because what they change was in it; they come first in the next. */
  #deferred: SingleWrite[] = [];
  #beforeCommit: (() => void)[] = [];
  #scheduled = false;
  #flushing = false;
  /** When the newest group was first refused, if the store has not taken a write or a heartbeat since. */
  #failingSince: number | undefined;
  #hurries = false;
  #onDeliveries: DeliveryListener = () => {};

  constructor(context: EngineContext) {
    this.#context = context;
  }

  onDeliveries(listener: DeliveryListener): void {
    this.#onDeliveries = listener;
  }

  /** Deliveries of these routes may be due, though no write made them so. */
  notifyDue(routes: readonly string[]): void {
    this.#onDeliveries(routes, []);
  }

  /** The store did not take the newest group at the first attempt. */
  get isFailing(): boolean {
    return this.#failingSince !== undefined;
  }

  /** The store, which other nodes share, has not taken writes for a while: what is new should not wait for it. */
  get isStoreAway(): boolean {
    const { lease } = this.#context;
    return lease.isShared && this.#failingSince !== undefined && lease.now() - this.#failingSince >= BLIP_MS;
  }

  /** The store has taken something that is not written here. */
  markReachable(): void {
    this.#failingSince = undefined;
  }

  /** From now on nothing is tried again: the process ends. */
  hurry(): void {
    this.#hurries = true;
  }

  /** The task has something to write. */
  markDirty(task: LiveTask): void {
    this.#dirty.add(task);
    this.#schedule();
  }

  /** Calls it once, when the next group is put together at the end of this turn of the event loop: it may add to it. */
  beforeCommit(call: () => void): void {
    this.#beforeCommit.push(call);
    this.#schedule();
  }

  /** A write beside the log, in the same group. */
  write(write: Write): Promise<WriteResult> {
    if (this.isStoreAway && !isOfRun(write)) return Promise.reject(toUnavailable(undefined));
    return new Promise((resolve, reject) => {
      // Before a message that registers the same delivery again, not after it.
      const goesFirst = write.kind === "delivery-put" || write.kind === "delivery-delete";
      (goesFirst ? this.#deferred : this.#singles).push({ write, resolve, reject });
      this.#schedule();
    });
  }

  /** A write that should get between those of another node: at once, and in a group only when the store fails. */
  async writeAtOnce(write: Write): Promise<WriteResult> {
    const results = await this.#context.store.write([write]).catch(() => undefined);
    if (results === undefined) return this.write(write);
    const [result] = results as readonly [WriteResult];
    if (result.ok) this.#notifyDeliveries([result]);
    return result;
  }

  #schedule(): void {
    if (this.#scheduled || this.#flushing) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = async (): Promise<void> => {
    this.#scheduled = false;
    if (this.#flushing) return;
    const calls = this.#beforeCommit;
    this.#beforeCommit = [];
    for (const call of calls) call();
    const writes: Write[] = [];
    const singles: SingleWrite[] = [];
    const deferred = this.#deferred;
    const fresh = this.#singles;
    this.#deferred = [];
    this.#singles = [];
    const rows = deferred.length + fresh.length === 0 ? undefined : new WrittenRows();
    if (rows !== undefined) this.#addSingles(deferred, singles, rows);
    const tasks = this.#takeTasks(writes, rows);
    if (rows !== undefined) this.#addSingles(fresh, singles, rows);
    for (const { write } of singles) writes.push(write);
    if (writes.length === 0) return;
    const group: Group = { tasks, singles, writes };
    this.#flushing = true;
    const begunAt = this.#context.clock.now();
    try {
      let results: readonly WriteResult[];
      let repeated = false;
      try {
        results = await this.#context.store.write(writes);
      } catch (error) {
        repeated = true;
        this.#failingSince ??= this.#context.lease.now();
        results = await this.#writeAgain(group, error);
      }
      this.#failingSince = undefined;
      this.#countCommit(writes, begunAt);
      this.#settle(group, results, repeated);
    } catch (cause) {
      this.#giveUp(group, cause);
    } finally {
      this.#flushing = false;
      if (this.#hasMore()) this.#schedule();
    }
  };

  #countCommit(writes: readonly Write[], begunAt: number): void {
    const { clock, meter } = this.#context;
    let events = 0;
    for (const write of writes) if (write.kind === "append" || write.kind === "submit") events += write.entries.length;
    meter.count("commits");
    meter.count("events_written", events);
    meter.count("commit_milliseconds", clock.now() - begunAt);
  }

  #hasMore(): boolean {
    return (
      this.#dirty.size > 0 || this.#singles.length > 0 || this.#deferred.length > 0 || this.#beforeCommit.length > 0
    );
  }

  /** A task of which a deferred write is in the group waits for the next. */
  #takeTasks(writes: Write[], rows: WrittenRows | undefined): LiveTask[] {
    const tasks: LiveTask[] = [];
    const dirty = this.#dirty;
    const isLost = this.#context.lease.isOver;
    // A new set, because the tables of one that is cleared are linked, and old ones would keep finished tasks alive.
    this.#dirty = new Set();
    for (const task of dirty) {
      if (rows?.hasTask(task.id) === true) {
        this.#dirty.add(task);
        continue;
      }
      if (isLost) {
        task.lose(leaseLostError());
        continue;
      }
      const write = task.takeWrite();
      if (write === undefined) continue;
      rows?.add(write);
      tasks.push(task);
      writes.push(write);
    }
    return tasks;
  }

  #addSingles(waiting: readonly SingleWrite[], group: SingleWrite[], rows: WrittenRows): void {
    for (const single of waiting) (rows.add(single.write) ? group : this.#deferred).push(single);
  }

  /** After a failed attempt. What callers wait for may be given up on the way, and is then no longer in the group. */
  async #writeAgain(group: Group, failure: unknown): Promise<readonly WriteResult[]> {
    const { clock, log, store } = this.#context;
    let error = failure;
    for (let attempt = 1; !this.#hurries; attempt++) {
      const delay = this.#retryDelay(attempt);
      if (delay === undefined) break;
      log.warn({ err: error, attempt }, "The store did not take a write; trying again.");
      await new Promise<void>((resolve) => {
        clock.after(delay, resolve);
      });
      this.#dropImpatient(group, error);
      if (group.writes.length === 0) break;
      try {
        return await store.write(group.writes);
      } catch (again) {
        error = again;
      }
    }
    throw error;
  }

  #retryDelay(attempt: number): number | undefined {
    const delay = RETRY_DELAYS_MS[attempt - 1];
    const { lease } = this.#context;
    if (!lease.isShared) return delay;
    return lease.isOver ? undefined : Math.min(delay ?? MAX_SHARED_DELAY_MS, MAX_SHARED_DELAY_MS);
  }

  /** Runs wait for a store that other nodes share as long as their lease holds; callers do not. */
  #dropImpatient(group: Group, error: unknown): void {
    const { lease } = this.#context;
    if (!lease.isShared || lease.now() - (this.#failingSince ?? 0) < PATIENCE_MS) return;
    const dropped: Group = { tasks: [], singles: [], writes: [] };
    const kept: Group = { tasks: [], singles: [], writes: [] };
    for (const [index, write] of group.writes.entries()) {
      const { singles, tasks, writes } = isOfRun(write) ? kept : dropped;
      const task = group.tasks[index];
      if (task === undefined) singles.push(group.singles[index - group.tasks.length] as SingleWrite);
      else tasks.push(task);
      writes.push(write);
    }
    Object.assign(group, kept);
    this.#takeImpatient(dropped);
    this.#giveUp(dropped, error);
  }

  /** Those that came after the group. */
  #takeImpatient({ tasks, singles }: Group): void {
    for (const task of this.#dirty) if (!task.isLeased) tasks.push(task);
    for (const task of tasks) this.#dirty.delete(task);
    const takeFrom = (waiting: SingleWrite[]) => {
      singles.push(...waiting.filter(({ write }) => !isOfRun(write)));
      return waiting.filter(({ write }) => isOfRun(write));
    };
    this.#singles = takeFrom(this.#singles);
    this.#deferred = takeFrom(this.#deferred);
  }

  #settle({ tasks, singles }: Group, results: readonly WriteResult[], repeated: boolean): void {
    const grown: string[] = [];
    const changed: AcceptedWrite[] = [];
    for (let index = 0; index < tasks.length; index++) {
      const task = tasks[index] as LiveTask;
      const result = results[index] as WriteResult;
      if (!result.ok) {
        task.onRefused(result, repeated);
        continue;
      }
      this.#settleTask(task, result.fence);
      if (result.due !== undefined || result.held !== undefined) changed.push(result);
      grown.push(task.id);
    }
    for (let index = 0; index < singles.length; index++) {
      const result = results[tasks.length + index] as WriteResult;
      if (result.ok && (result.due !== undefined || result.held !== undefined)) changed.push(result);
      (singles[index] as SingleWrite).resolve(result);
    }
    this.#context.store.wakeups.publish({ log: grown });
    if (changed.length > 0) this.#notifyDeliveries(changed);
  }

  #notifyDeliveries(results: readonly AcceptedWrite[]): void {
    const due = new Set(results.flatMap((result) => result.due ?? []));
    this.#onDeliveries(
      [...due],
      results.flatMap((result) => result.held ?? []),
    );
  }

  /** Whatever goes wrong with one task after the commit must not reach the others of its group. */
  #settleTask(task: LiveTask, fence: number): void {
    try {
      task.onCommitted(fence);
    } catch (cause) {
      this.#context.log.error({ err: cause, task: task.id }, "A committed task cannot be followed here any more.");
      task.lose(new ProtocolError("INTERNAL_ERROR", "The task cannot be followed here any more.", { cause }));
    }
  }

  #giveUp({ tasks, singles }: Group, cause: unknown): void {
    if (tasks.length + singles.length === 0) return;
    this.#context.log.error(
      { err: cause, tasks: tasks.length },
      "The store does not take writes; the runs are given up.",
    );
    const error = toUnavailable(cause);
    for (const task of tasks) task.lose(error);
    for (const single of singles) single.reject(error);
  }
}

function toUnavailable(cause: unknown): ProtocolError {
  const message = `Nothing can be stored: ${describeStoreError(cause)}.`;
  return new ProtocolError("UNAVAILABLE", message, { cause, retryAfter: 5 });
}

/** What goes to the store in one call: first the writes of tasks, then the others. */
interface Group {
  tasks: LiveTask[];
  singles: SingleWrite[];
  writes: Write[];
}

/** Written by a run or a delivery that continues; all else has a caller that waits. */
function isOfRun(write: Write): boolean {
  if (write.kind === "append") return write.fence !== undefined && typeof write.lease !== "object";
  return write.kind === "remember" || write.kind === "delivery-progress";
}

/** What one group changes: no row twice. */
class WrittenRows {
  readonly #tasks = new Set<string>();
  readonly #records = new Set<string>();
  readonly #registered = new Set<string>();
  readonly #progressed = new Set<string>();
  readonly #places = new Set<number>();

  hasTask(id: string): boolean {
    return this.#tasks.has(id) || this.#progressed.has(id);
  }

  /** False if the write has to wait for the next group. */
  add(write: Write): boolean {
    if (!("id" in write)) return addIfNew(this.#records, JSON.stringify([write.space, write.key]));
    const { id } = write;
    if (write.kind === "delivery-progress") {
      // Changes a row of its own, which only a registration changes too.
      if (this.#registered.has(id) || !addIfNew(this.#places, write.place)) return false;
      this.#progressed.add(id);
      return true;
    }
    const registers = registersDeliveries(write);
    if ((registers && this.#progressed.has(id)) || !addIfNew(this.#tasks, id)) return false;
    if (registers) this.#registered.add(id);
    return true;
  }
}

function addIfNew<Row>(rows: Set<Row>, row: Row): boolean {
  if (rows.has(row)) return false;
  rows.add(row);
  return true;
}
