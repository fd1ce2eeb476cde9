import { ProtocolError, taskNotFound } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import { type Message, placeInTask } from "../../model/message.ts";
import { isInterrupted, isTerminal } from "../../model/task.ts";
import type { Append, TaskHead } from "../../store/contract.ts";
import {
  checkBytes,
  checkCapacity,
  checkContext,
  claimOf,
  type IncomingSend,
  inputSize,
  taskEndedError,
  toRequestDetails,
  toTurn,
} from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { DuplicateSend, fromHead, isSameScope, toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import type { LiveTasks } from "../tasks/live-tasks.ts";
import type { LogReader } from "../tasks/log-readers.ts";
import { statusEvent } from "../tasks/task-events.ts";
import { type EventExtras, isSameEntry } from "../tasks/task-write.ts";
import type { StoredSend } from "./existing-task.ts";
import type { Placement } from "./placement.ts";

/** A message for a task that this node runs. */
export interface Accepted {
  readonly live: LiveTask;
  /** Stands before the first event of a new task; a task that existed before is followed from its snapshot. */
  readonly reader: LogReader | undefined;
}

/** Enough for a message to get between two writes of a run on another node that never pauses. */
const MAX_ATTEMPTS = 50;

/** Messages for tasks that exist, whether this node runs them, another one or none. */
export class FollowUps {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #tasks: LiveTasks;
  readonly #placement: Placement;
  /** Parked tasks being taken up: a second message waits for the first. */
  readonly #opening = new Map<string, Promise<unknown>>();

  constructor(context: EngineContext, runner: Runner, placement: Placement) {
    this.#context = context;
    this.#runner = runner;
    this.#tasks = runner.tasks;
    this.#placement = placement;
  }

  async accept(send: IncomingSend, taskId: string): Promise<Accepted | StoredSend> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const live = this.#tasks.findInScope(taskId, toScope(send.served, send.call));
      if (live !== undefined) {
        checkContext(send.input.message, live.contextId);
        if (live.closed || live.isReleasing) await live.whenGone();
        else if (await this.#receive(live, send)) return { live, reader: undefined };
        continue;
      }
      const opening = this.#opening.get(taskId);
      if (opening !== undefined) {
        await opening.catch(() => undefined);
        continue;
      }
      const opened = this.#open(send, taskId).finally(() => this.#opening.delete(taskId));
      this.#opening.set(taskId, opened);
      const accepted = await opened;
      if (accepted !== undefined) return accepted;
    }
    throw new ProtocolError("UNAVAILABLE", "The task is busy; try again.", { metadata: { taskId }, retryAfter: 1 });
  }

  /**
   * A message for a task that this node runs: it becomes durable at once and waits for its turn. False if another node
   * has taken the task over before that.
   */
  async #receive(live: LiveTask, send: IncomingSend): Promise<boolean> {
    if (isTerminal(live.state)) throw taskEndedError(live.id);
    const { input, call } = send;
    const bytes = inputSize(input);
    checkBytes(this.#tasks.ownerLoads, call, bytes, this.#context.limits);
    this.#tasks.addMessageBytes(live, bytes);
    const message = placeInTask(input.message, live.id, live.contextId);
    live.addTurn(toTurn(message, send, undefined));
    live.decide();
    // The answer has come before the question was even parked, so nothing is required any more.
    const state = live.state === "TASK_STATE_INPUT_REQUIRED" ? "TASK_STATE_WORKING" : live.state;
    live.push(statusEvent(this.#context, live, state), this.#extrasOf(message, send));
    if (!(await flushedHere(live))) return false;
    const duplicate = this.#tasks.findDuplicate(message);
    if (duplicate !== undefined) throw duplicate;
    this.#runner.start(live);
    return true;
  }

  /** A message for a task that waits: this node takes it up. Undefined if another node did something to it first. */
  async #open(send: IncomingSend, taskId: string): Promise<Accepted | StoredSend | undefined> {
    const { served, input, call } = send;
    const head = await this.#context.store.head(taskId);
    if (head === undefined || !isSameScope(head, toScope(served, call))) throw taskNotFound(taskId);
    checkContext(input.message, head.contextId);
    const { state } = head.status;
    if (isTerminal(state)) throw taskEndedError(taskId);
    const { limits, node } = this.#context;
    const isElsewhere = head.node === undefined ? this.#runner.runsElsewhere(served) : head.node !== node;
    if (!isInterrupted(state) || isElsewhere) return this.#leave(send, head);
    const bytes = inputSize(input);
    checkCapacity(served, this.#tasks.ownerLoads, call, bytes, limits);
    const fold = await this.#tasks.unpark(head);
    if (fold.number !== head.number || this.#tasks.get(taskId) !== undefined) return undefined;
    try {
      checkBytes(this.#tasks.ownerLoads, call, fold.historySize + bytes, limits);
    } catch (error) {
      this.#tasks.park(fold, head.bytes);
      throw error;
    }
    const { fence } = head;
    const options = { ...fromHead(head), fold, fence, attempt: 1, phase: "taking", visible: true } as const;
    const live = this.#tasks.add(served, options, bytes);
    const message = placeInTask(input.message, taskId, head.contextId);
    const turn = toTurn(message, send, undefined);
    live.addTurn(turn);
    live.beginTurn(turn, fold.number + 1);
    live.push(statusEvent(this.#context, live, "TASK_STATE_WORKING"), this.#extrasOf(message, send));
    this.#runner.start(live);
    return (await flushedHere(live)) ? { live, reader: undefined } : undefined;
  }

  /**
   * A message for a task that another node runs, or will have to: it is left in the log, where that node finds it when
   * its turn ends. Undefined if the log has grown since.
   */
  async #leave(send: IncomingSend, head: TaskHead): Promise<StoredSend | undefined> {
    const { id } = head;
    const message = placeInTask(send.input.message, id, head.contextId);
    const { request, claim, deliveries } = this.#extrasOf(message, send);
    const { state } = head.status;
    const event = statusEvent(this.#context, head, isInterrupted(state) ? "TASK_STATE_WORKING" : state);
    const entry = LogEntry.of(head.number + 1, event, message, request);
    const append: Append = {
      kind: "append",
      id,
      expect: head.number,
      entries: [entry],
      status: event.statusUpdate.status,
      ...(claim === undefined ? undefined : { idempotency: claim }),
      ...(deliveries === undefined ? undefined : { deliveries }),
    };
    // Before the run writes again.
    const result = await this.#runner.committer.writeAtOnce(append);
    if (!result.ok) {
      if (result.refusal === "duplicate") throw new DuplicateSend(result.record);
      if (result.refusal !== "position" || !(await this.#isWritten(id, entry))) return undefined;
    }
    this.#context.store.wakeups.publish({ log: [id], work: true });
    if (head.node === undefined) this.#placement.failIfUnclaimed(send.served, id, entry.number);
    return { taskId: id };
  }

  /** Whether an earlier try was made and only its answer was lost. */
  async #isWritten(id: string, entry: LogEntry): Promise<boolean> {
    const [read] = await this.#context.store.read([{ id, after: entry.number - 1 }], 1);
    return read?.kind === "entries" && isSameEntry(entry, read.entries[0]);
  }

  #extrasOf(received: Message, send: IncomingSend): EventExtras {
    const { deliveries } = send;
    return { received, request: toRequestDetails(send), claim: claimOf(this.#context, send), deliveries };
  }
}

/** Waits until everything pushed is durable; false if another node was quicker, so that nothing of it was written. */
async function flushedHere(live: LiveTask): Promise<boolean> {
  try {
    await live.whenFlushed();
    return true;
  } catch (error) {
    if (live.lostRefusal === undefined || live.lostRefusal === "duplicate") throw error;
    return false;
  }
}
