import { ProtocolError } from "../../model/errors.ts";
import {
  type AcceptedWrite,
  type DeliveryClaim,
  describeStoreError,
  registersDeliveries,
  type Write,
  type WriteResult,
} from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";

export type RefusedWrite = Extract<WriteResult, { ok: false }>;

/** A task whose log the committer writes, and that learns what became of its writes. */
export interface Committable {
  readonly id: string;
  /** The write that brings the store up to date; undefined if it is, or if the task is no longer written here. */
  takeWrite(): Write | undefined;
  onCommitted(fence: number): void;
  /**
   * The store refused: what the task knew of itself is not how it stands. After a `repeated` write that may be because
   * the first try did succeed and only its answer was lost.
   */
  onRefused(result: RefusedWrite, repeated: boolean): void;
  /** Nothing more of the task can be written here. */
  markLost(error: Error): void;
}

/** Learns what writes did to deliveries. */
export interface DeliveryListener {
  /** Deliveries of these routes may be due. */
  onDue(routes: readonly string[]): void;
  /** These were written as held by this node. */
  onHeld(claims: readonly DeliveryClaim[]): void;
}

/** Something that may add to the next group when it is put together, at the end of this turn of the event loop. */
export interface CommitParticipant {
  beforeCommit(): void;
}

interface SingleWrite {
  readonly write: Write;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: Error) => void;
}

const RETRY_DELAYS_MS = [50, 250, 1_000, 4_000];

/**
 * Group commit: everything that wants to be written in one turn of the event loop goes to the store in one call, with
 * one such call under way at a time and at most one write per task or record in it.
 */
export class Committer {
  readonly #context: EngineContext;
  #dirty = new Set<Committable>();
  #singles: SingleWrite[] = [];
  /** Left out of the group before because what they change was in it; they come first in the next. */
  #deferred: SingleWrite[] = [];
  #participants: CommitParticipant[] = [];
  #scheduled = false;
  #flushing = false;
  #failing = false;
  #deliveries: DeliveryListener | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  setDeliveryListener(listener: DeliveryListener): void {
    this.#deliveries = listener;
  }

  /** Deliveries of these routes may be due, though no write made them so. */
  notifyDue(routes: readonly string[]): void {
    this.#deliveries?.onDue(routes);
  }

  /** The store did not take the newest group at the first attempt. */
  get isFailing(): boolean {
    return this.#failing;
  }

  /** The task has something to write. */
  markDirty(task: Committable): void {
    this.#dirty.add(task);
    this.#schedule();
  }

  /** Calls it once, when the next group is put together. */
  addParticipant(participant: CommitParticipant): void {
    this.#participants.push(participant);
    this.#schedule();
  }

  /** A write beside the log, in the same group. */
  write(write: Write): Promise<WriteResult> {
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
    const participants = this.#participants;
    this.#participants = [];
    for (const participant of participants) participant.beforeCommit();
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
    this.#flushing = true;
    try {
      let results: readonly WriteResult[];
      let repeated = false;
      try {
        results = await this.#context.store.write(writes);
        this.#failing = false;
      } catch (error) {
        repeated = true;
        results = await this.#writeAgain(writes, error);
      }
      this.#settle(tasks, singles, results, repeated);
    } catch (cause) {
      this.#giveUp(tasks, singles, cause);
    } finally {
      this.#flushing = false;
      if (this.#hasMore()) this.#schedule();
    }
  };

  #hasMore(): boolean {
    return (
      this.#dirty.size > 0 || this.#singles.length > 0 || this.#deferred.length > 0 || this.#participants.length > 0
    );
  }

  /** A task of which a deferred write is in the group waits for the next. */
  #takeTasks(writes: Write[], rows: WrittenRows | undefined): Committable[] {
    const tasks: Committable[] = [];
    const dirty = this.#dirty;
    // A new set, because the tables of one that is cleared are linked, and old ones would keep finished tasks alive.
    this.#dirty = new Set();
    for (const task of dirty) {
      if (rows?.hasTask(task.id) === true) {
        this.#dirty.add(task);
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

  /** After a failed attempt. */
  async #writeAgain(writes: readonly Write[], failure: unknown): Promise<readonly WriteResult[]> {
    const { clock, log, store } = this.#context;
    this.#failing = true;
    let error = failure;
    for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
      log.warn({ err: error, attempt: index + 1 }, "The store did not take a write; trying again.");
      await new Promise<void>((resolve) => {
        clock.after(delay, resolve);
      });
      try {
        return await store.write(writes);
      } catch (again) {
        error = again;
      }
    }
    throw error;
  }

  #settle(
    tasks: readonly Committable[],
    singles: readonly SingleWrite[],
    results: readonly WriteResult[],
    repeated: boolean,
  ): void {
    const grown: string[] = [];
    const changed: AcceptedWrite[] = [];
    for (let index = 0; index < tasks.length; index++) {
      const task = tasks[index] as Committable;
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
    const due = new Set<string>();
    for (const result of results) {
      if (result.held !== undefined) this.#deliveries?.onHeld(result.held);
      for (const route of result.due ?? []) due.add(route);
    }
    if (due.size > 0) this.#deliveries?.onDue([...due]);
  }

  /** Whatever goes wrong with one task after the commit must not reach the others of its group. */
  #settleTask(task: Committable, fence: number): void {
    try {
      task.onCommitted(fence);
    } catch (cause) {
      this.#context.log.error({ err: cause, task: task.id }, "A committed task cannot be followed here any more.");
      task.markLost(new ProtocolError("INTERNAL_ERROR", "The task cannot be followed here any more.", { cause }));
    }
  }

  #giveUp(tasks: readonly Committable[], singles: readonly SingleWrite[], cause: unknown): void {
    this.#context.log.error(
      { err: cause, tasks: tasks.length },
      "The store does not take writes; the runs are given up.",
    );
    const message = `Nothing can be stored: ${describeStoreError(cause)}.`;
    const error = new ProtocolError("UNAVAILABLE", message, { cause, retryAfter: 5 });
    for (const task of tasks) task.markLost(error);
    for (const single of singles) single.reject(error);
  }
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
