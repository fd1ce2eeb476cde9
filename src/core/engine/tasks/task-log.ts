import { ChunkFrame, LogEntry, type TaskEvent } from "../../model/event.ts";
import type { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import { isTerminal, STATE_CLASS, type TaskState } from "../../model/task.ts";
import type { Append, Scope, Submit } from "../../store/contract.ts";
import { taskEndedError } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import type { Committable, Committer, RefusedWrite } from "./committer.ts";
import { TaskWaiters } from "./task-waiters.ts";
import {
  type EventExtras,
  type InFlightWrite,
  isSameEntry,
  mergeChunks,
  NO_EXTRAS,
  type PendingEvent,
  toAppend,
  toSubmit,
  toWorking,
} from "./task-write.ts";

/** One write of the store holds up all others: what waits for it is bounded in size, not only in number. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;

export interface TaskLogOptions extends Omit<Scope, "agent"> {
  readonly id: string;
  readonly contextId: string;
  readonly dialect: string;
  readonly fold: TaskFold;
  readonly fence: number;
  readonly turn: number;
  /** What the store keeps of it already. */
  readonly bytes: number;
  /** Where the task comes from: new and not yet written, parked in the store without a lease, or leased already. */
  readonly origin: "new" | "parked" | "leased";
  /** Until then no webhook is sent events of the task, which may still be taken back. */
  readonly notifyAfterMs?: number | undefined;
}

/**
 * The log of a task that this node runs, as it is being written: what is committed, what is on its way to the store and
 * what waits for the next write.
 *
 * `fold` is the task as committed: nothing of what is pending is in it, so whatever is read from it may be shown.
 * Events get their numbers when they are handed to the store, after merging.
 */
export abstract class TaskLog implements Scope, Committable {
  readonly id: string;
  readonly contextId: string;
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly dialect: string;
  readonly fold: TaskFold;
  readonly notifyAfterMs: number | undefined;
  protected readonly context: EngineContext;
  readonly #committer: Committer;

  #fence: number;
  #state: TaskState;
  #origin: TaskLogOptions["origin"];
  #closed = false;
  #loss: Error | undefined;
  /** Bytes of all that is kept of the task, what waits to be written included. */
  #bytes: number;
  /** `#bytes` when the events before were handed to the store. */
  #bytesTaken: number;
  #releaseNext = false;
  /** What the next write has to say of the run: that it waits in line (false), or that it begins (true). */
  #beginsNext: boolean | undefined;
  /** Claimed, and no turn of it was begun here yet. */
  #isUnrun: boolean;
  /** The turn the store knows of or is about to; `#turn` is the one it has still to learn. */
  #knownTurn: number;
  #turn: number | undefined;
  #pending: PendingEvent[] = [];
  #inFlight: InFlightWrite | undefined;
  /** Of the newest chunk of text. */
  #chunkFrame: ChunkFrame | undefined;
  /** Pushed things that are not events: they are waited for like events. */
  #marks = 0;
  #pushed = 0;
  #committed = 0;
  /** Made for the first that waits: most tasks have one listener in their whole life. */
  #waiters: TaskWaiters | undefined;

  constructor(context: EngineContext, committer: Committer, agent: string, options: TaskLogOptions) {
    this.context = context;
    this.#committer = committer;
    this.id = options.id;
    this.contextId = options.contextId;
    this.agent = agent;
    this.tenant = options.tenant;
    this.owner = options.owner;
    this.dialect = options.dialect;
    this.fold = options.fold;
    this.notifyAfterMs = options.notifyAfterMs;
    this.#fence = options.fence;
    this.#origin = options.origin;
    this.#isUnrun = options.origin === "leased";
    this.#knownTurn = options.turn;
    this.#bytes = options.bytes;
    this.#bytesTaken = options.bytes;
    this.#state = options.fold.number === 0 ? "TASK_STATE_SUBMITTED" : options.fold.status.state;
  }

  /** Messages that are not answered yet: until they are, the lease is kept. */
  abstract get openTurns(): number;
  protected abstract afterCommit(entries: readonly LogEntry[]): void;
  protected abstract afterLoss(): void;
  abstract onRefused(result: RefusedWrite, repeated: boolean): void;

  get fence(): number {
    return this.#fence;
  }

  /** The state after everything pushed so far, committed or not. */
  get state(): TaskState {
    return this.#state;
  }

  /** No longer this node's task: ended, parked, answered by a message or lost. Later events are dropped. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Nothing of this task has been handed to the store yet. */
  get isUnwritten(): boolean {
    return this.#origin === "new" && this.#inFlight === undefined;
  }

  get isLeased(): boolean {
    return this.#origin === "leased";
  }

  /** Taken from those that wait for their caller, with a lease that the store has yet to grant. */
  get isBeingTaken(): boolean {
    return this.#origin === "parked";
  }

  get isWriting(): boolean {
    return this.#inFlight !== undefined;
  }

  /** The lease is on its way back to the store. */
  get isReleasing(): boolean {
    return this.#inFlight?.release === true;
  }

  /** Why this node can no longer write the task. */
  get lostError(): Error | undefined {
    return this.#loss;
  }

  /** Adds an event to the log. Whatever comes after the terminal event is dropped and counted. */
  push(event: TaskEvent, extras: EventExtras = NO_EXTRAS): void {
    if (this.#closed || (isTerminal(this.#state) && !("task" in event))) {
      this.context.meter.count("events_dropped_after_terminal");
      return;
    }
    if ("statusUpdate" in event) this.#state = event.statusUpdate.status.state;
    if (extras === NO_EXTRAS && this.#mergedIntoLast(event)) return;
    const { received, request, claim, deliveries } = extras;
    this.#pending.push({ event, received, request, claim, deliveries });
    this.#pushed++;
    this.#committer.markDirty(this);
  }

  /** What is kept of the task, or about to be. */
  get bytes(): number {
    return this.#bytes;
  }

  protected countBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  /** A promise when the run is so far ahead of the store that it should wait: in events, or in what they hold. */
  get backlog(): Promise<void> | undefined {
    const isAhead =
      this.#pending.length >= this.context.limits.pendingEvents || this.#bytes - this.#bytesTaken >= MAX_PENDING_BYTES;
    return isAhead ? this.whenFlushed() : undefined;
  }

  /** Resolves when everything pushed so far is durable; rejects if it never will be. */
  whenFlushed(): Promise<void> {
    if (this.#loss !== undefined) return Promise.reject(this.#loss);
    if (this.#committed >= this.#pushed) return Promise.resolve();
    return this.waiters().waitForCommit(this.#pushed);
  }

  /** The store is to know which event's message is being answered, so that a resumed run answers the same. */
  beginTurn(number: number): void {
    this.#isUnrun = false;
    if (number === this.#knownTurn) return;
    this.#knownTurn = number;
    this.#turn = number;
    this.#committer.markDirty(this);
  }

  /** The run has to wait for its agent. Written with the first write, so that a crash finds a run that never began. */
  markQueued(): void {
    this.#beginsNext = false;
    // The claim has counted the run.
    if (this.#isUnrun) this.#committer.markDirty(this);
  }

  /** The run that waited begins; to be committed before it does. */
  markStarted(): void {
    // Not even written that it waits: then there is nothing to take back.
    if (this.#beginsNext === false) {
      this.#beginsNext = undefined;
      return;
    }
    this.#beginsNext = true;
    this.#marks = 1;
    this.#pushed++;
    this.#committer.markDirty(this);
  }

  /** The lease goes back to the store with the next write, unless another message comes first. */
  requestRelease(): void {
    this.#releaseNext = true;
    this.#committer.markDirty(this);
  }

  takeWrite(): Submit | Append | undefined {
    if (this.#closed || this.#inFlight !== undefined) return undefined;
    const events = this.#takePending();
    const release = this.#releaseNext && this.openTurns === 0 && this.#pending.length === 0;
    const turn = this.#turn;
    if (events.length === 0 && !release && turn === undefined && this.#beginsNext === undefined) return undefined;
    this.#releaseNext = false;
    this.#turn = undefined;
    this.#bytesTaken = this.#bytes;
    const expect = this.fold.number;
    const entries = events.map(({ event, received, request }, index) => {
      const frame = ChunkFrame.of(event, this.#chunkFrame);
      if (frame !== undefined) this.#chunkFrame = frame;
      return LogEntry.of(expect + 1 + index, event, received, request, frame);
    });
    // Of a task that has run here it says nothing: its turn before is answered.
    const begins = this.#beginsNext === false && this.isLeased && !this.#isUnrun ? undefined : this.#beginsNext;
    this.#inFlight = { events, entries, turn, release, begins, marks: this.#marks };
    this.#beginsNext = undefined;
    this.#marks = 0;
    const { node } = this.context;
    if (this.#origin === "new") return toSubmit(this, this.#inFlight, node);
    return toAppend(this, this.#inFlight, this.#origin === "parked" ? node : undefined);
  }

  onCommitted(fence: number): void {
    const inFlight = this.#inFlight;
    if (inFlight === undefined) return;
    this.#inFlight = undefined;
    this.#origin = "leased";
    this.#fence = fence;
    const { entries, events } = inFlight;
    for (let index = 0; index < entries.length; index++) {
      this.fold.apply(entries[index] as LogEntry, (events[index] as PendingEvent).event);
    }
    this.#committed += entries.length + inFlight.marks;
    if (inFlight.release || isTerminal(this.fold.status.state)) this.#closed = true;
    this.afterCommit(entries);
    if (this.#waiters !== undefined) {
      this.#waiters.notifyCommitted(this.#committed);
      if (inFlight.release) this.#waiters.notify("released");
      this.#notifySettled();
    }
    if (this.#hasMore()) this.#committer.markDirty(this);
  }

  /** Whether these entries of the log are the write whose answer was lost. */
  matchesInFlightWrite(entries: readonly LogEntry[]): boolean {
    const own = this.#inFlight?.entries ?? [];
    return own.length > 0 && own.every((entry, index) => isSameEntry(entry, entries[index]));
  }

  /** The message whose idempotency claim is in the write under way. */
  get claimedMessage(): Message | undefined {
    return this.#inFlight?.events.find((event) => event.claim !== undefined)?.received;
  }

  /** The write was not made but may succeed later: its events go before those that came meanwhile, without `dropped`. */
  retry(dropped?: Message): void {
    const inFlight = this.#inFlight;
    if (inFlight === undefined) return;
    this.#inFlight = undefined;
    const events = inFlight.events.filter(({ received }) => received === undefined || received !== dropped);
    this.#committed += inFlight.events.length - events.length;
    this.#pending = [...events, ...this.#pending];
    this.#state = this.#findState();
    this.#turn ??= inFlight.turn;
    this.#beginsNext ??= inFlight.begins;
    this.#marks += inFlight.marks;
    if (inFlight.release) this.#releaseNext = true;
    this.#waiters?.notifyCommitted(this.#committed);
    // Requests that waited for the release look again.
    if (inFlight.release) this.#waiters?.notify("released");
    this.#committer.markDirty(this);
  }

  /** Entries that another node wrote: they come before a write that was refused for them, which is made again. */
  protected rebase(entries: readonly LogEntry[], hasMessages: boolean): void {
    this.retry();
    for (const entry of entries) this.fold.apply(entry);
    if (isTerminal(this.fold.status.state)) {
      this.#state = this.fold.status.state;
      this.#closed = true;
      this.#pending = [];
      this.#waiters?.rejectCommits(taskEndedError(this.id));
      this.#committed = this.#pushed;
      this.#notifySettled();
      return;
    }
    // A message that was accepted meanwhile must still be answered, so the task does not complete yet.
    if (hasMessages) for (const pending of this.#pending) pending.event = toWorking(pending.event);
    this.#state = this.#findState();
  }

  markLost(error: Error): void {
    if (this.#loss !== undefined) return;
    this.#closed = true;
    this.#loss = error;
    this.#pending = [];
    this.#inFlight = undefined;
    this.afterLoss();
    this.#waiters?.notifyLost(error);
  }

  /** Forget an unwritten task: it never existed. */
  discard(): void {
    this.#closed = true;
    this.#pending = [];
    this.#committed = this.#pushed;
    this.#waiters?.notifyCommitted(this.#committed);
  }

  /** While the task is being taken back, requests for it wait, and then find that there is none. */
  beginDiscard(): void {
    this.#closed = true;
  }

  cancelDiscard(): void {
    this.#closed = false;
  }

  protected waiters(): TaskWaiters {
    this.#waiters ??= new TaskWaiters();
    return this.#waiters;
  }

  protected notify(milestone: Parameters<TaskWaiters["notify"]>[0]): void {
    this.#waiters?.notify(milestone);
  }

  #notifySettled(): void {
    if (STATE_CLASS[this.fold.status.state] !== "active") this.#waiters?.notify("settled");
  }

  /** Everything pending, up to a second claim: the store takes one with each write. */
  #takePending(): PendingEvent[] {
    const all = this.#pending;
    let claims = 0;
    const end = all.findIndex(({ claim }) => claim !== undefined && ++claims === 2);
    this.#pending = end < 0 ? [] : all.slice(end);
    return end < 0 ? all : all.slice(0, end);
  }

  #mergedIntoLast(event: TaskEvent): boolean {
    const last = this.#pending.at(-1);
    if (last === undefined || this.#pending.length <= this.context.limits.mergeAfter) return false;
    const merged = last.received === undefined ? mergeChunks(last.event, event) : undefined;
    if (merged === undefined) return false;
    last.event = merged;
    this.context.meter.count("events_merged");
    return true;
  }

  #findState(): TaskState {
    for (let index = this.#pending.length - 1; index >= 0; index--) {
      const { event } = this.#pending[index] as PendingEvent;
      if ("statusUpdate" in event) return event.statusUpdate.status.state;
    }
    return this.fold.number === 0 ? "TASK_STATE_SUBMITTED" : this.fold.status.state;
  }

  #hasMore(): boolean {
    return this.#pending.length > 0 || this.#turn !== undefined || this.#beginsNext !== undefined || this.#releaseNext;
  }
}
