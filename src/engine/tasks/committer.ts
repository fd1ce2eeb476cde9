import { ProtocolError } from "../../model/errors.ts";
import type { LogEntry } from "../../model/event.ts";
import { describeStoreError, type Write, type WriteResult } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import type { LiveTask } from "./live-task.ts";

/** What becomes of a task after a write; the rest of the engine decides, the committer only tells. */
export interface CommitListener {
  onCommitted(task: LiveTask, entries: readonly LogEntry[]): void;
  /**
   * The store refused: what the task knew of itself is not how it stands. After a `repeated` write that may be because
   * the first try did succeed and only its answer was lost.
   */
  onRefused(task: LiveTask, result: Extract<WriteResult, { ok: false }>, repeated: boolean): void;
  /** This process no longer speaks for the task. */
  onLost(task: LiveTask): void;
  /** The store failed for good: the task is still ours in its eyes, though nobody will run it. */
  onAbandoned(task: LiveTask): void;
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
 * one such call under way at a time.
 */
export class Committer {
  readonly #context: EngineContext;
  readonly #listener: CommitListener;
  #dirty = new Set<LiveTask>();
  #singles: SingleWrite[] = [];
  #members: CommitParticipant[] = [];
  #scheduled = false;
  #flushing = false;
  /** Called when something that was written is to be told to somebody's webhook. */
  onPushDue: () => void = () => {};

  constructor(context: EngineContext, listener: CommitListener) {
    this.#context = context;
    this.#listener = listener;
  }

  /** The task has something to write. */
  markDirty(task: LiveTask): void {
    this.#dirty.add(task);
    this.#schedule();
  }

  /** Asks once, when the next group is put together. */
  addParticipant(member: CommitParticipant): void {
    this.#members.push(member);
    this.#schedule();
  }

  reportLost(task: LiveTask): void {
    this.#listener.onLost(task);
  }

  /** A write beside the log, in the same group. Comes after the tasks of its group. */
  write(write: Write): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.#singles.push({ write, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#flushing) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = async (): Promise<void> => {
    this.#scheduled = false;
    if (this.#flushing) return;
    const members = this.#members;
    this.#members = [];
    for (const member of members) member.beforeCommit();
    const tasks: LiveTask[] = [];
    const writes: Write[] = [];
    for (const task of this.#dirty) {
      const write = task.closed ? undefined : task.takeWrite();
      if (write === undefined) continue;
      tasks.push(task);
      writes.push(write);
    }
    this.#dirty.clear();
    const singles = this.#singles;
    this.#singles = [];
    for (const single of singles) writes.push(single.write);
    if (writes.length === 0) return;
    this.#flushing = true;
    try {
      const { results, repeated } = await this.#writeDurably(writes);
      this.#settle(tasks, singles, results, repeated);
    } catch (cause) {
      this.#giveUp(tasks, singles, cause);
    } finally {
      this.#flushing = false;
      if (this.#dirty.size > 0 || this.#singles.length > 0 || this.#members.length > 0) this.#schedule();
    }
  };

  async #writeDurably(writes: readonly Write[]): Promise<{ results: readonly WriteResult[]; repeated: boolean }> {
    for (let attempt = 0; ; attempt++) {
      try {
        return { results: await this.#context.store.write(writes), repeated: attempt > 0 };
      } catch (error) {
        const delay = RETRY_DELAYS_MS[attempt];
        if (delay === undefined) throw error;
        this.#context.log.warn({ err: error, attempt: attempt + 1 }, "The store did not take a write; trying again.");
        await new Promise<void>((resolve) => {
          this.#context.clock.after(delay, resolve);
        });
      }
    }
  }

  #settle(
    tasks: readonly LiveTask[],
    singles: readonly SingleWrite[],
    results: readonly WriteResult[],
    repeated: boolean,
  ): void {
    const grown: string[] = [];
    let isDue = false;
    for (let index = 0; index < tasks.length; index++) {
      const task = tasks[index] as LiveTask;
      const result = results[index] as WriteResult;
      if (!result.ok) {
        this.#listener.onRefused(task, result, repeated);
        continue;
      }
      if (result.due === true) isDue = true;
      this.#settleTask(task, result.fence);
      grown.push(task.id);
    }
    for (let index = 0; index < singles.length; index++) {
      const result = results[tasks.length + index] as WriteResult;
      if (result.ok && result.due === true) isDue = true;
      (singles[index] as SingleWrite).resolve(result);
    }
    this.#context.store.wakeups.publish({ log: grown });
    if (isDue) this.onPushDue();
  }

  /** Whatever goes wrong with one task after the commit must not reach the others of its group. */
  #settleTask(task: LiveTask, fence: number): void {
    try {
      this.#listener.onCommitted(task, task.applyCommit(fence));
    } catch (cause) {
      this.#context.log.error({ err: cause, task: task.id }, "A committed task cannot be followed here any more.");
      task.markLost(new ProtocolError("INTERNAL_ERROR", "The task cannot be followed here any more.", { cause }));
    }
  }

  #giveUp(tasks: readonly LiveTask[], singles: readonly SingleWrite[], cause: unknown): void {
    this.#context.log.error(
      { err: cause, tasks: tasks.length },
      "The store does not take writes; the runs are given up.",
    );
    const message = `Nothing can be stored: ${describeStoreError(cause)}.`;
    const error = new ProtocolError("UNAVAILABLE", message, { cause, retryAfter: 5 });
    for (const task of tasks) {
      this.#listener.onAbandoned(task);
      task.markLost(error);
    }
    for (const single of singles) single.reject(error);
  }
}
