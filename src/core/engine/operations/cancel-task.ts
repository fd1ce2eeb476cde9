import { ProtocolError } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import type { CallContext } from "../../model/operation.ts";
import { isTerminal, type Task } from "../../model/task.ts";
import type { TaskHead } from "../../store/contract.ts";
import type { ServedAgent } from "../concurrency.ts";
import type { EngineContext } from "../options.ts";
import { toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import { waitUntil } from "../tasks/log-stream.ts";
import { statusEvent } from "../tasks/task-events.ts";
import type { TaskQueries } from "./task-queries.ts";

const MAX_ATTEMPTS = 10;

/** Ending a task at its caller's request, wherever it runs. */
export class CancelHandler {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #reading: TaskQueries;

  constructor(context: EngineContext, runner: Runner, reading: TaskQueries) {
    this.#context = context;
    this.#runner = runner;
    this.#reading = reading;
  }

  async cancel(served: ServedAgent, id: string, call: CallContext): Promise<Task> {
    let graceIsOver = false;
    let isAsked = false;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const live = this.#runner.tasks.findInScope(id, toScope(served, call));
      if (live !== undefined) {
        if (call.cancelsOnce === true && !isAsked && live.state === "TASK_STATE_CANCELED") throw notCancelable(id);
        isAsked = true;
        const task = await this.#cancelLive(live);
        if (task !== undefined) return task;
        continue;
      }
      const head = await this.#reading.head(served, id, call);
      const isFirst = isAsked || call.cancelsOnce !== true;
      if (head.status.state === "TASK_STATE_CANCELED" && isFirst) return this.#reading.get(served, id, undefined, call);
      if (isTerminal(head.status.state)) throw notCancelable(id);
      isAsked = true;
      if (head.node === undefined) {
        if (await this.#cancelParked(head)) this.#runner.notifyDropped(served, head);
      } else if (graceIsOver) await this.#takeOver(served, id);
      else graceIsOver = await this.#askOwner(head);
    }
    throw new ProtocolError("UNAVAILABLE", "The task is busy; try again.", { metadata: { taskId: id }, retryAfter: 1 });
  }

  /** Undefined if the task has left this node before it ended. */
  async #cancelLive(live: LiveTask): Promise<Task | undefined> {
    if (live.isReleasing || (live.closed && live.lostError === undefined)) {
      await live.whenGone();
      return undefined;
    }
    // Terminal already, though perhaps not yet on disk: the outcome decides what the caller gets.
    if (!isTerminal(live.state)) this.#runner.cancel(live);
    try {
      await live.whenEnded();
    } catch (error) {
      if (live.lostRefusal === undefined) throw error;
      return undefined;
    }
    const task = live.toTask(undefined);
    if (task.status.state !== "TASK_STATE_CANCELED") throw notCancelable(live.id);
    return task;
  }

  /** No node runs it: the terminal event is written here, unless another write was quicker. */
  async #cancelParked(head: TaskHead): Promise<boolean> {
    const event = statusEvent(this.#context, head, "TASK_STATE_CANCELED");
    const entry = LogEntry.of(head.number + 1, event);
    const result = await this.#runner.committer.write({
      kind: "append",
      id: head.id,
      expect: head.number,
      fence: head.fence,
      entries: [entry],
      status: event.statusUpdate.status,
    });
    if (!result.ok) return false;
    this.#runner.readers.cache(head.id, [entry]);
    this.#context.store.wakeups.publish({ log: [head.id] });
    return true;
  }

  /** Another node runs it and has the grace time to end it. True if it did not. */
  async #askOwner({ id, number }: TaskHead): Promise<boolean> {
    const { store, clock, times } = this.#context;
    const result = await this.#runner.committer.write({ kind: "request-cancel", id });
    if (!result.ok) return false;
    store.wakeups.publish({ cancel: [id] });
    const reader = this.#runner.readers.open(id, number);
    // That node's own grace time ends first, and what it writes then may be found by a sweep only.
    const stopTimer = clock.after(times.cancelGraceMs + times.sweepMs, () => reader.close());
    const ended = await waitUntil(reader, isTerminal);
    stopTimer();
    return !ended;
  }

  /** The node that ran the task did not end it in time: from here on it cannot write to it. */
  async #takeOver(served: ServedAgent, id: string): Promise<void> {
    const { store, node } = this.#context;
    const result = await this.#runner.committer.write({ kind: "request-cancel", id, take: node });
    if (!result.ok) return;
    const head = await store.head(id);
    if (head === undefined) return;
    const live = await this.#runner.tasks.adopt(served, { head, fence: result.fence });
    if (live !== undefined) this.#runner.cancel(live);
    // The node that lost the task stops its run.
    live?.whenFlushed().then(
      () => store.wakeups.publish({ log: [id], work: true }),
      () => undefined,
    );
  }
}

function notCancelable(taskId: string): ProtocolError {
  return new ProtocolError("TASK_NOT_CANCELABLE", "The task has already ended.", { metadata: { taskId } });
}
