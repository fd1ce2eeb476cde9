import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import { LogEntry, type TaskEvent } from "../model/event.ts";
import type { TaskFold } from "../model/fold.ts";
import type { Message } from "../model/message.ts";
import { isTerminal, STATE_CLASS, type TaskState } from "../model/state.ts";
import type { Append, IdempotencyClaim, Scope, Submit } from "../store/contract.ts";
import type { Committer } from "./committer.ts";
import { mergeChunks } from "./merge.ts";
import type { EngineContext } from "./options.ts";

interface PendingEvent {
  event: TaskEvent;
  readonly received: Message | undefined;
}

interface Waiter {
  readonly count: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What others wait for in a task. */
type Occasion = "decided" | "settled" | "released" | "lost";

interface Listener {
  readonly occasion: Occasion;
  readonly call: () => void;
}

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
  /** Set while the task itself has still to be written. */
  readonly unsubmitted?: boolean;
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
  readonly since: number;
  fence: number;

  /** Messages not yet given to the agent; the first is the current turn's while it runs. */
  readonly turns: QueuedTurn[] = [];
  /** Its turns are running or in line to run. */
  active = false;
  /** No longer this process's task: ended, parked, discarded or lost. Later events are dropped. */
  closed = false;
  /** Someone outside knows the task: it can no longer be taken back. */
  shown = false;

  /** Undefined while it is open whether the answer is this task; then null, or the message that is the answer. */
  #decision: Message | null | undefined;
  #loss: Error | undefined;
  /** Both made for the first who waits: most tasks have one listener in their whole life. */
  #listeners: Listener[] | undefined;
  /** In the order of their counts. */
  #waiters: Waiter[] | undefined;
  #releaseNext = false;
  #releasing = false;
  #state: TaskState;
  #unsubmitted: boolean;
  #pending: PendingEvent[] = [];
  #inFlight: { readonly events: readonly PendingEvent[]; readonly entries: readonly LogEntry[] } | undefined;
  #take = false;
  #claim: IdempotencyClaim | undefined;
  #turn: number | undefined;
  #pushed = 0;
  #committed = 0;
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
    this.since = context.clock.now();
    this.#unsubmitted = options.unsubmitted === true;
    this.#state = state;
  }

  /** The state after everything pushed so far, committed or not. */
  get state(): TaskState {
    return this.#state;
  }

  /** Nothing of this task has been handed to the store yet. */
  get unwritten(): boolean {
    return this.#unsubmitted && this.#inFlight === undefined;
  }

  /** Why this process can no longer speak for the task. */
  get loss(): Error | undefined {
    return this.#loss;
  }

  /** The lease is on its way back to the store. */
  get releasing(): boolean {
    return this.#releasing;
  }

  /** The first word counts: once the answer is the task, it stays the task. */
  decide(message?: Message): void {
    if (this.#decision !== undefined) return;
    this.#decision = message ?? null;
    this.#tell("decided");
    if (message !== undefined) this.#tell("settled");
  }

  /** Resolves with the message of an agent that answered without a task, or undefined when the answer is the task. */
  async decided(): Promise<Message | undefined> {
    if (this.#decision === undefined) await this.#told("decided");
    return this.#decision ?? undefined;
  }

  /**
   * Resolves when the committed task is terminal or interrupted, or with the message that took its place. Rejects if
   * this process lost the task on the way.
   */
  async settled(): Promise<Message | undefined> {
    while (!this.#isSettled()) await this.#told("settled");
    if (this.#loss !== undefined) throw this.#loss;
    return this.#decision ?? undefined;
  }

  /** The next write also takes the lease of a task that was parked. */
  takeLease(): void {
    this.#take = true;
  }

  /** The next write also claims an idempotency key; one per write. */
  claim(idempotency: IdempotencyClaim): void {
    this.#claim = idempotency;
  }

  onLoss(listener: () => void): void {
    if (this.#loss === undefined) this.#listen("lost", listener);
    else listener();
  }

  /** Resolves when a release under way is done. */
  released(): Promise<void> {
    return this.#told("released");
  }

  /**
   * Adds an event to the log. Returns a promise when the run is so far ahead of the store that it should wait.
   * Whatever comes after the terminal event is dropped and counted.
   */
  push(event: TaskEvent, received?: Message): Promise<void> | undefined {
    if (this.closed || isTerminal(this.#state)) {
      this.#context.meter.count("events_dropped_after_terminal");
      return undefined;
    }
    if ("statusUpdate" in event) this.#state = event.statusUpdate.status.state;
    else if ("task" in event) this.#state = event.task.status.state;
    if (received === undefined && this.#mergedIntoLast(event)) return undefined;
    this.#pending.push({ event, received });
    this.#pushed++;
    this.#committer.mark(this);
    return this.#pending.length >= this.#context.limits.pendingEvents ? this.flushed() : undefined;
  }

  /** Resolves when everything pushed so far is durable; rejects if it never will be. */
  flushed(): Promise<void> {
    if (this.#committed >= this.#pushed) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters ??= [];
      this.#waiters.push({ count: this.#pushed, resolve, reject });
    });
  }

  /** The store is to know which event's message is being answered, so that a resumed run answers the same. */
  beginTurn(number: number): void {
    this.#turn = number;
  }

  /** The lease goes back to the store with the next write, unless another message comes first. */
  requestRelease(): void {
    this.#releaseNext = true;
    this.#committer.mark(this);
  }

  /** The write that brings the store up to date, or undefined if it is. Called by the committer alone. */
  takeWrite(): Submit | Append | undefined {
    if (this.#inFlight !== undefined) return undefined;
    const events = this.#pending;
    const release = this.#releaseNext && this.turns.length === 0;
    this.#releaseNext = false;
    if (events.length === 0 && !release) return undefined;
    this.#releasing = release;
    this.#pending = [];
    const expect = this.fold.number;
    const entries = events.map(({ event, received }, index) => LogEntry.of(expect + 1 + index, event, received));
    this.#inFlight = { events, entries };
    return this.#unsubmitted ? this.#toSubmit(entries) : this.#toAppend(expect, entries, release);
  }

  /** The write is durable. Returns the entries that may now be shown. */
  committed(fence: number): readonly LogEntry[] {
    const entries = this.#inFlight?.entries ?? [];
    this.#inFlight = undefined;
    this.#unsubmitted = false;
    this.#take = false;
    this.#claim = undefined;
    this.#turn = undefined;
    this.fence = fence;
    for (const entry of entries) {
      this.fold.apply(entry);
      if (entry.received !== undefined) this.#numberTurn(entry.received, entry.number);
    }
    this.#committed += entries.length;
    this.#settleWaiters();
    const { state } = this.fold.status;
    if (this.#releasing || isTerminal(state)) this.closed = true;
    const wasReleasing = this.#releasing;
    this.#releasing = false;
    if (wasReleasing) this.#tell("released");
    if (STATE_CLASS[state] !== "active") this.#tell("settled");
    if (this.#pending.length > 0) this.#committer.mark(this);
    return entries;
  }

  /** The write was not made but may succeed later: its events go before those that came meanwhile. */
  retry(): void {
    if (this.#inFlight === undefined) return;
    this.#pending = [...this.#inFlight.events, ...this.#pending];
    this.#inFlight = undefined;
    if (this.#releasing) this.#releaseNext = true;
    this.#releasing = false;
    this.#committer.mark(this);
  }

  /** Entries someone else wrote come before the write that was refused for them, which is then tried again. */
  overtake(entries: readonly LogEntry[]): void {
    for (const entry of entries) this.fold.apply(entry);
    const { state } = this.fold.status;
    if (isTerminal(state)) throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.");
    this.retry();
  }

  /** Nothing more of this task can be written here. */
  lose(error: Error): void {
    if (this.closed) return;
    this.closed = true;
    this.#loss = error;
    this.#pending = [];
    this.#inFlight = undefined;
    for (const waiter of this.#waiters?.splice(0) ?? []) waiter.reject(error);
    this.decide();
    this.#releasing = false;
    this.#committer.lost(this);
    this.#tell("released");
    this.#tell("settled");
    this.#tell("lost");
  }

  /** Forget an unwritten task: it never existed. */
  forget(): void {
    this.closed = true;
    this.#pending = [];
    this.#unsubmitted = false;
    this.#committed = this.#pushed;
    this.#settleWaiters();
  }

  #toSubmit(entries: readonly LogEntry[]): Submit {
    const idempotency = this.#claim;
    return {
      kind: "submit",
      id: this.id,
      agent: this.agent,
      tenant: this.tenant,
      owner: this.owner,
      contextId: this.contextId,
      dialect: this.dialect,
      entries,
      status: statusAfter(entries) ?? this.fold.status,
      turn: this.#turn ?? 1,
      node: this.#context.node,
      ...(idempotency === undefined ? undefined : { idempotency }),
    };
  }

  #toAppend(expect: number, entries: readonly LogEntry[], release: boolean): Append {
    const status = statusAfter(entries);
    const idempotency = this.#claim;
    return {
      kind: "append",
      id: this.id,
      expect,
      fence: this.fence,
      entries,
      ...(status === undefined ? undefined : { status }),
      ...(this.#turn === undefined ? undefined : { turn: this.#turn }),
      ...(this.#take ? { lease: { take: this.#context.node } } : undefined),
      ...(release ? { lease: "release" as const } : undefined),
      ...(idempotency === undefined ? undefined : { idempotency }),
    };
  }

  #numberTurn(message: Message, number: number): void {
    const queued = this.turns.find((turn) => turn.message === message);
    if (queued !== undefined) queued.number = number;
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

  #isSettled(): boolean {
    if (this.#loss !== undefined || (this.#decision !== undefined && this.#decision !== null)) return true;
    return this.fold.number > 0 && STATE_CLASS[this.fold.status.state] !== "active";
  }

  #settleWaiters(): void {
    const waiters = this.#waiters;
    if (waiters === undefined) return;
    while (waiters.length > 0 && (waiters[0] as Waiter).count <= this.#committed) waiters.shift()?.resolve();
  }

  #told(occasion: Occasion): Promise<void> {
    return new Promise((resolve) => this.#listen(occasion, resolve));
  }

  #listen(occasion: Occasion, call: () => void): void {
    this.#listeners ??= [];
    this.#listeners.push({ occasion, call });
  }

  #tell(occasion: Occasion): void {
    const listeners = this.#listeners;
    if (listeners === undefined || listeners.length === 0) return;
    const others = listeners.filter((listener) => listener.occasion !== occasion);
    this.#listeners = others;
    for (const listener of listeners) if (listener.occasion === occasion) listener.call();
  }
}

function statusAfter(entries: readonly LogEntry[]) {
  for (let index = entries.length - 1; index >= 0; index--) {
    const event = (entries[index] as LogEntry).event;
    if ("statusUpdate" in event) return event.statusUpdate.status;
    if ("task" in event) return event.task.status;
  }
  return undefined;
}
