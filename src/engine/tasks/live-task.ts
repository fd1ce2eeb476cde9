import type { Caller } from "../../model/caller.ts";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import type { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import { isTerminal, STATE_CLASS, type TaskState } from "../../model/task.ts";
import type { Append, Scope, Submit } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import type { Committer } from "./committer.ts";
import { TaskWaiters } from "./task-waiters.ts";
import {
  type EventExtras,
  type InFlightWrite,
  mergeChunks,
  NO_EXTRAS,
  type PendingEvent,
  toAppend,
  toSubmit,
} from "./task-write.ts";

/** One write of the store holds up all others: what waits for it is bounded in size, not only in number. */
const MAX_PENDING_CHARACTERS = 4 * 1024 * 1024;

/** A message that waits for its turn. */
export interface QueuedTurn {
  /** Of the event that brought the message; known once it is committed. */
  number: number | undefined;
  readonly message: Message;
  readonly caller: Caller;
  readonly acceptedOutputModes: readonly string[];
  readonly metadata: Message["metadata"];
}

export interface LiveTaskOptions extends Scope {
  readonly id: string;
  readonly contextId: string;
  readonly dialect: string;
  readonly fold: TaskFold;
  readonly fence: number;
  readonly attempt: number;
  readonly turn: number;
  /** Where the task comes from: new and not yet written, parked in the store without a lease, or leased already. */
  readonly origin: "new" | "parked" | "leased";
}

/**
 * A task this process is at work on, and the only one here that writes its log.
 *
 * `fold` is the task as committed: nothing of what is pending is in it, so whatever is read from it may be shown.
 * Events get their numbers when they are handed to the store, after merging.
 */
export class LiveTask implements Scope {
  readonly id: string;
  readonly contextId: string;
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly dialect: string;
  readonly fold: TaskFold;
  readonly attempt: number;
  /** When this process took the task up. */
  readonly startedAt: number;
  fence: number;

  /** Messages not yet given to the agent; the first is the current turn's while it runs. */
  readonly turns: QueuedTurn[] = [];
  /** Its turns are running or in line to run. */
  active = false;
  /** No longer this process's task: ended, parked, answered by a message or lost. Later events are dropped. */
  closed = false;
  /** Bytes of messages that its owner has in memory for it. */
  messageBytes: number;
  /** Characters the agent has written so far. */
  writtenCharacters = 0;
  /** Someone outside knows the task: it can no longer be taken back. */
  visible = false;
  /** Of a run that has given no sign yet: called when the task is shown without one. */
  onVisible: (() => void) | undefined;
  /** Until then no webhook is told of the task, which may still be taken back. */
  notifyAfter: number | undefined;

  #state: TaskState;
  #origin: LiveTaskOptions["origin"];
  /** Undefined while it is open whether the answer is this task; then null, or the message that is the answer. */
  #decision: Message | null | undefined;
  #loss: Error | undefined;
  /** `written` when the events before were handed to the store. */
  #writtenTaken = 0;
  #releaseNext = false;
  /** What the next write has to say of the run: that it waits in line (false), or that it begins (true). */
  #beginsNext: boolean | undefined;
  /** The turn the store knows of or is about to; `#turn` is the one it has still to be told. */
  #knownTurn: number;
  #turn: number | undefined;
  #pending: PendingEvent[] = [];
  #inFlight: InFlightWrite | undefined;
  /** Pushed things that are no events: they are waited for like events. */
  #marks = 0;
  #pushed = 0;
  #committed = 0;
  /** Made for the first who waits: most tasks have one listener in their whole life. */
  #listeners: TaskWaiters | undefined;
  readonly #context: EngineContext;
  readonly #committer: Committer;

  constructor(context: EngineContext, committer: Committer, options: LiveTaskOptions, state: TaskState) {
    this.#context = context;
    this.#committer = committer;
    this.id = options.id;
    this.contextId = options.contextId;
    this.agent = options.agent;
    this.tenant = options.tenant;
    this.owner = options.owner;
    this.dialect = options.dialect;
    this.fold = options.fold;
    this.fence = options.fence;
    this.attempt = options.attempt;
    this.messageBytes = options.fold.historySize;
    this.startedAt = context.clock.now();
    this.#origin = options.origin;
    this.#knownTurn = options.turn;
    this.#state = state;
  }

  /** The state after everything pushed so far, committed or not. */
  get state(): TaskState {
    return this.#state;
  }

  /** Nothing of this task has been handed to the store yet. */
  get isUnwritten(): boolean {
    return this.#origin === "new" && this.#inFlight === undefined;
  }

  /** Why this process can no longer speak for the task. */
  get lostError(): Error | undefined {
    return this.#loss;
  }

  /** The lease is on its way back to the store. */
  get isReleasing(): boolean {
    return this.#inFlight?.release === true;
  }

  /** Adds an event to the log. Whatever comes after the terminal event is dropped and counted. */
  push(event: TaskEvent, arrival: EventExtras = NO_EXTRAS): void {
    if (this.closed || (isTerminal(this.#state) && !("task" in event))) {
      this.#context.meter.count("events_dropped_after_terminal");
      return;
    }
    if ("statusUpdate" in event) this.#state = event.statusUpdate.status.state;
    if (arrival === NO_EXTRAS && this.#mergedIntoLast(event)) return;
    const { received, request, claim, push } = arrival;
    this.#pending.push({ event, received, request, claim, push });
    this.#pushed++;
    this.#committer.markDirty(this);
  }

  /** A promise when the run is so far ahead of the store that it should wait: in events, or in what they hold. */
  get backlog(): Promise<void> | undefined {
    const isAhead =
      this.#pending.length >= this.#context.limits.pendingEvents ||
      this.writtenCharacters - this.#writtenTaken >= MAX_PENDING_CHARACTERS;
    return isAhead ? this.whenFlushed() : undefined;
  }

  /** Resolves when everything pushed so far is durable; rejects if it never will be. */
  whenFlushed(): Promise<void> {
    if (this.#loss !== undefined) return Promise.reject(this.#loss);
    if (this.#committed >= this.#pushed) return Promise.resolve();
    return this.#listening().waitForCommit(this.#pushed);
  }

  /** The first word counts: once the answer is the task, it stays the task. */
  decide(message?: Message): void {
    if (this.#decision !== undefined) return;
    this.#decision = message ?? null;
    this.#listeners?.notify("decided");
    if (message !== undefined) this.#listeners?.notify("settled");
  }

  /** Resolves with the message of an agent that answered without a task, or undefined when the answer is the task. */
  async whenDecided(): Promise<Message | undefined> {
    if (this.#decision === undefined) await this.#listening().waitFor("decided");
    return this.#decision ?? undefined;
  }

  /**
   * Resolves when the committed task is terminal or interrupted, or with the message that took its place. Rejects if
   * this process lost the task on the way.
   */
  async whenSettled(): Promise<Message | undefined> {
    while (!this.#isSettled()) await this.#listening().waitFor("settled");
    if (this.#loss !== undefined) throw this.#loss;
    return this.#decision ?? undefined;
  }

  /** Resolves when the committed task is terminal. Rejects if this process lost the task on the way. */
  async whenEnded(): Promise<void> {
    while (this.fold.number === 0 || !isTerminal(this.fold.status.state)) {
      if (this.#loss !== undefined) throw this.#loss;
      await this.#listening().waitFor("settled");
    }
  }

  onLost(listener: () => void): void {
    if (this.#loss === undefined) this.#listening().on("lost", listener);
    else listener();
  }

  /** Resolves when a task that is on its way out of this process has left it: parked, or answered by a message. */
  async whenGone(): Promise<void> {
    if (this.isReleasing) await this.#listening().waitFor("released");
    else await this.whenDecided();
  }

  /** The store is to know which event's message is being answered, so that a resumed run answers the same. */
  beginTurn(number: number): void {
    if (number === this.#knownTurn) return;
    this.#knownTurn = number;
    this.#turn = number;
    this.#committer.markDirty(this);
  }

  /** The run has to wait for its agent. Said with the first write, so that a crash finds a run that never began. */
  markQueued(): void {
    this.#beginsNext = false;
  }

  /** The run that waited begins; to be committed before it does. */
  markStarted(): void {
    // Not even said that it waits: then there is nothing to take back.
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

  /** The write that brings the store up to date, or undefined if it is. Called by the committer alone. */
  takeWrite(): Submit | Append | undefined {
    if (this.#inFlight !== undefined) return undefined;
    const events = this.#takePending();
    const release = this.#releaseNext && this.turns.length === 0 && this.#pending.length === 0;
    const turn = this.#turn;
    if (events.length === 0 && !release && turn === undefined && this.#beginsNext === undefined) return undefined;
    this.#releaseNext = false;
    this.#turn = undefined;
    this.#writtenTaken = this.writtenCharacters;
    const expect = this.fold.number;
    const entries = events.map(({ event, received, request }, index) =>
      LogEntry.of(expect + 1 + index, event, received, request),
    );
    this.#inFlight = { events, entries, turn, release, begins: this.#beginsNext, marks: this.#marks };
    this.#beginsNext = undefined;
    this.#marks = 0;
    const { node } = this.#context;
    if (this.#origin === "new") return toSubmit(this, this.#inFlight, node);
    return toAppend(this, this.#inFlight, this.#origin === "parked" ? node : undefined);
  }

  /** The write is durable. Returns the entries that may now be shown. */
  applyCommit(fence: number): readonly LogEntry[] {
    const inFlight = this.#inFlight;
    if (inFlight === undefined) return [];
    this.#inFlight = undefined;
    this.#origin = "leased";
    this.fence = fence;
    this.#apply(inFlight.entries);
    this.#committed += inFlight.entries.length + inFlight.marks;
    const { state } = this.fold.status;
    if (inFlight.release || isTerminal(state)) this.closed = true;
    if (this.#listeners !== undefined) {
      this.#listeners.notifyCommitted(this.#committed);
      if (inFlight.release) this.#listeners.notify("released");
      if (STATE_CLASS[state] !== "active") this.#listeners.notify("settled");
    }
    if (this.#hasMore()) this.#committer.markDirty(this);
    return inFlight.entries;
  }

  /** Whether these entries of the log are the write whose answer was lost. */
  matchesInFlightWrite(entries: readonly LogEntry[]): boolean {
    const own = this.#inFlight?.entries ?? [];
    return own.length > 0 && own.every((entry, index) => entries[index]?.json === entry.json);
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
    this.#turn ??= inFlight.turn;
    this.#beginsNext ??= inFlight.begins;
    this.#marks += inFlight.marks;
    if (inFlight.release) this.#releaseNext = true;
    this.#listeners?.notifyCommitted(this.#committed);
    this.#committer.markDirty(this);
  }

  /** Entries someone else wrote come before the write that was refused for them, which is then tried again. */
  rebase(entries: readonly LogEntry[]): void {
    this.#apply(entries);
    this.retry();
  }

  /** Nothing more of this task can be written here. */
  markLost(error: Error): void {
    if (this.#loss !== undefined) return;
    this.closed = true;
    this.#loss = error;
    this.#pending = [];
    this.#inFlight = undefined;
    this.decide();
    this.#committer.reportLost(this);
    this.#listeners?.notifyLost(error);
  }

  /** Forget an unwritten task: it never existed. */
  discard(): void {
    this.closed = true;
    this.#pending = [];
    this.#committed = this.#pushed;
    this.#listeners?.notifyCommitted(this.#committed);
  }

  /** Everything pending, up to a second claim: the store takes one with each write. */
  #takePending(): PendingEvent[] {
    const all = this.#pending;
    const firstClaim = all.findIndex(({ claim }) => claim !== undefined);
    const end = firstClaim < 0 ? -1 : all.findIndex(({ claim }, index) => index > firstClaim && claim !== undefined);
    this.#pending = end < 0 ? [] : all.slice(end);
    return end < 0 ? all : all.slice(0, end);
  }

  #apply(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      this.fold.apply(entry);
      if (entry.received === undefined) continue;
      const queued = this.turns.find(({ message }) => message === entry.received);
      if (queued !== undefined) queued.number = entry.number;
    }
  }

  #mergedIntoLast(event: TaskEvent): boolean {
    const last = this.#pending.at(-1);
    if (last === undefined || this.#pending.length <= this.#context.limits.mergeAfter) return false;
    const merged = last.received === undefined ? mergeChunks(last.event, event) : undefined;
    if (merged === undefined) return false;
    last.event = merged;
    this.#context.meter.count("events_merged");
    return true;
  }

  #hasMore(): boolean {
    return this.#pending.length > 0 || this.#turn !== undefined || this.#beginsNext !== undefined || this.#releaseNext;
  }

  #isSettled(): boolean {
    if (this.#loss !== undefined || (this.#decision !== undefined && this.#decision !== null)) return true;
    return this.fold.number > 0 && STATE_CLASS[this.fold.status.state] !== "active";
  }

  #listening(): TaskWaiters {
    this.#listeners ??= new TaskWaiters();
    return this.#listeners;
  }
}
