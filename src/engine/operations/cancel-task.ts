import { ProtocolError } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import type { JsonValue } from "../../model/json.ts";
import type { CallContext } from "../../model/operation.ts";
import { formatTimestamp, isTerminal, type Task } from "../../model/task.ts";
import type { TaskHead } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import { toScope } from "../request-identity.ts";
import type { Runner, ServedAgent } from "../runs/runner.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import { waitUntilSettled } from "../tasks/log-stream.ts";
import type { TaskQueries } from "./task-queries.ts";

const MAX_CANCEL_ATTEMPTS = 5;

/** Ending a task on its caller's wish, wherever it stands. */
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
    for (let attempt = 0; attempt < MAX_CANCEL_ATTEMPTS; attempt++) {
      const live = this.#runner.findInScope(id, toScope(served, call));
      if (live !== undefined) {
        if (live.closed || live.isReleasing) {
          await live.whenGone();
          continue;
        }
        return this.#cancelLive(live);
      }
      const head = await this.#reading.head(served, id, call);
      if (head.status.state === "TASK_STATE_CANCELED") return this.#reading.get(served, id, undefined, call);
      if (isTerminal(head.status.state)) throw notCancelable(id);
      if (head.node !== undefined) return this.#askElsewhere(served, id, head, call);
      if (await this.#cancelParked(head)) {
        this.#tellAgent(served, head);
        return this.#reading.get(served, id, undefined, call);
      }
    }
    throw new ProtocolError("UNAVAILABLE", "The task is busy; try again.", { metadata: { taskId: id }, retryAfter: 1 });
  }

  async #cancelLive(live: LiveTask): Promise<Task> {
    // Terminal already, though perhaps not yet on disk: the outcome decides what the caller is told.
    if (!isTerminal(live.state)) this.#runner.cancel(live);
    await live.whenEnded();
    const task = live.fold.toTask({ historyLength: this.#context.limits.historyPage });
    if (task.status.state !== "TASK_STATE_CANCELED") throw notCancelable(live.id);
    return task;
  }

  /** Nobody runs it: the terminal event is written here, unless somebody else was quicker. */
  async #cancelParked(head: TaskHead): Promise<boolean> {
    const status = { state: "TASK_STATE_CANCELED" as const, timestamp: formatTimestamp(this.#context.clock.now()) };
    const update = { taskId: head.id, contextId: head.contextId, status };
    const entry = LogEntry.of(head.number + 1, { statusUpdate: update });
    const result = await this.#runner.committer.write({
      kind: "append",
      id: head.id,
      expect: head.number,
      fence: head.fence,
      entries: [entry],
      status,
    });
    if (!result.ok) return false;
    this.#runner.readers.cache(head.id, [entry]);
    this.#context.store.wakeups.publish({ log: [head.id] });
    return true;
  }

  /** Nobody waits for what the agent does about it. */
  #tellAgent({ agent, name }: ServedAgent, { contextId, id }: TaskHead): void {
    const recall = async <T extends JsonValue>(key: string): Promise<T | undefined> => {
      const text = (await this.#context.store.memory(id)).get(key);
      return text === undefined ? undefined : (JSON.parse(text) as T);
    };
    agent.dropped?.({ id, contextId, memory: { get: recall } }).catch((error: unknown) => {
      this.#context.log.warn({ err: error, task: id, agent: name }, "An agent could not drop a cancelled task.");
    });
  }

  /** Another node runs it: that node is told through the store and has the grace time to act. */
  async #askElsewhere(served: ServedAgent, id: string, head: TaskHead, call: CallContext): Promise<Task> {
    await this.#runner.committer.write({ kind: "request-cancel", id });
    this.#context.store.wakeups.publish({ cancel: [id] });
    const reader = this.#runner.readers.open(id, head.number);
    const stopTimer = this.#context.clock.after(2 * this.#context.times.cancelGraceMs, () => reader.close());
    await waitUntilSettled(reader);
    stopTimer();
    return this.#reading.get(served, id, undefined, call);
  }
}

function notCancelable(taskId: string): ProtocolError {
  return new ProtocolError("TASK_NOT_CANCELABLE", "The task has already ended.", { metadata: { taskId } });
}
