import type { LogEntry, TaskEvent } from "../../model/event.ts";
import type { TaskFold } from "../../model/fold.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import { statusText } from "../../model/status-texts.ts";
import { isTerminal, STATE_CLASS, type Task, type TaskState } from "../../model/task.ts";
import type { Append, Scope, Submit } from "../../store/contract.ts";
import type { MessageDraft } from "../agent.ts";
import type { ServedAgent } from "../concurrency.ts";
import { type QueuedTurn, taskEndedError, toStoredTurn } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import type { RefusedWrite } from "./committer.ts";
import type { LiveTasks } from "./live-tasks.ts";
import { statusEvent } from "./task-events.ts";
import { type Loss, TaskLife } from "./task-life.ts";
import { TaskLog } from "./task-log.ts";
import { type EventExtras, isSameEntry, NO_EXTRAS, toAppend, toSubmit } from "./task-write.ts";

export interface LiveTaskOptions extends Omit<Scope, "agent"> {
  readonly id: string;
  readonly contextId: string;
  readonly dialect: string;
  readonly fold: TaskFold;
  readonly phase: "new" | "taking" | "leased";
  readonly fence: number;
  readonly attempt: number;
  /** What the store keeps of it already. */
  readonly bytes: number;
  /** A caller knows the task: it cannot be withdrawn. */
  readonly visible: boolean;
  /** Until then no webhook is sent events of the task, which may still be withdrawn. */
  readonly notifyAfterMs?: number | undefined;
}

/** A task this node runs: its life, its log as it is being written and the messages that wait for their turn. */
export class LiveTask extends TaskLife implements Scope {
  readonly id: string;
  readonly contextId: string;
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly dialect: string;
  readonly notifyAfterMs: number | undefined;
  readonly served: ServedAgent;
  readonly attempt: number;
  /** When this node took the task up. */
  readonly startedAt: number;
  /** Bytes of messages that its owner has in memory for it. */
  messageBytes: number;
  readonly #context: EngineContext;
  readonly #tasks: LiveTasks;
  /** The first is the current turn's while it runs. */
  readonly #turns: QueuedTurn[] = [];
  readonly #log: TaskLog;

  constructor(context: EngineContext, tasks: LiveTasks, served: ServedAgent, options: LiveTaskOptions) {
    super(options.phase, options.fence, options.visible);
    this.#context = context;
    this.#tasks = tasks;
    this.served = served;
    this.id = options.id;
    this.contextId = options.contextId;
    this.agent = served.name;
    this.tenant = options.tenant;
    this.owner = options.owner;
    this.dialect = options.dialect;
    this.notifyAfterMs = options.notifyAfterMs;
    this.attempt = options.attempt;
    this.startedAt = context.clock.now();
    this.messageBytes = options.fold.historySize;
    this.#log = new TaskLog(options.fold, options.bytes);
  }

  /** The task as committed: whatever is read from it may be shown. */
  get fold(): TaskFold {
    return this.#log.fold;
  }

  /** As committed, with at most a page of its newest messages. */
  toTask(historyLength: number | undefined): Task {
    const { historyPage } = this.#context.limits;
    return this.fold.toTask({ historyLength: Math.min(historyLength ?? historyPage, historyPage) });
  }

  /** Nothing of this task has been handed to the store yet. */
  get isUnwritten(): boolean {
    return this.phase === "new" && !this.isWriting;
  }

  /** This node can no longer write the task. Whatever was pushed and not committed never will be. */
  lose(error: Error, how?: Omit<Loss, "error">): void {
    if (this.closed && this.phase !== "withdrawing") return;
    const { isLeased } = this;
    this.enter("lost", this.fence, { error, ...how });
    const flushed = this.#log.clear();
    this.decide();
    this.#tasks.onLost(this, isLeased);
    for (const { reject } of flushed) reject(error);
    this.notify("released");
    this.notify("settled");
    this.notify("lost");
  }

  /** The agent answered with a message, and nothing of the task is written, or the store has forgotten it. */
  withdraw(reply: Message): void {
    this.enter("withdrawn");
    for (const { resolve } of this.#log.clear()) resolve();
    this.decideFor(reply);
  }

  beginWithdrawal(): void {
    this.enter("withdrawing");
  }

  cancelWithdrawal(): void {
    this.enter("leased");
  }

  onLost(listener: () => void): void {
    if (this.lostError === undefined) this.on("lost", listener);
    else listener();
  }

  /** Resolves when a task on its way out of this node has left it, released or withdrawn, or stays after all. */
  async whenGone(): Promise<void> {
    if (this.isReleasing) await this.reached("released");
    else await this.whenDecided();
  }

  /** The agent has no room. Written with the first write, so that a crash finds a run that never began. */
  queue(): void {
    const isFirst = this.run === "unrun";
    this.moveRun(isFirst ? "first-queued" : "queued");
    if (!isFirst) return;
    this.#log.announceRun(false);
    this.#markDirty();
  }

  /** A run that waited in line and is known to has to be known to begin before it does: `whenFlushed` waits for that. */
  begin(): void {
    const waited = this.run === "first-queued";
    this.moveRun("running");
    if (!waited || this.closed) return;
    this.#log.announceRun(true);
    this.#markDirty();
  }

  /** No turn is left: the lease goes back unless the task ends, or another message comes first. */
  rest(): void {
    this.moveRun("idle");
    if (this.#isResting) this.#markDirty();
  }

  get #isResting(): boolean {
    return this.run === "idle" && this.#turns.length === 0 && !this.closed && !isTerminal(this.state);
  }

  /** Messages that are not answered yet: until they are, the lease is kept. */
  get openTurns(): number {
    return this.#turns.length;
  }

  get currentTurn(): QueuedTurn | undefined {
    return this.#turns[0];
  }

  addTurn(turn: QueuedTurn): void {
    this.#turns.push(turn);
    this.notify("turn-added");
  }

  /** The store is to know which event's message is being answered, so that a resumed run answers the same. */
  beginTurn(turn: QueuedTurn, number: number): void {
    if (turn.isStored === true) return;
    turn.isStored = true;
    this.#log.announceTurn(number);
    this.#markDirty();
  }

  endTurn(): void {
    this.#turns.shift();
  }

  /**
   * Resolves when the committed task is terminal or interrupted, or with the message that took its place. Rejects if
   * this node lost the task on the way.
   */
  whenSettled(): Promise<Message | undefined> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (this.lostError !== undefined) reject(this.lostError);
        else if (this.reply !== undefined || this.#isSettled) resolve(this.reply);
        else this.on("settled", settle);
      };
      settle();
    });
  }

  /** Resolves when the committed task is terminal. Rejects if this node lost the task on the way. */
  async whenEnded(): Promise<void> {
    while (this.fold.number === 0 || !isTerminal(this.fold.status.state)) {
      if (this.lostError !== undefined) throw this.lostError;
      await this.reached("settled");
    }
  }

  get #isSettled(): boolean {
    return this.fold.number > 0 && STATE_CLASS[this.fold.status.state] !== "active";
  }

  /** The state after everything pushed so far, committed or not. */
  get state(): TaskState {
    return this.#log.state;
  }

  get isWriting(): boolean {
    return this.#log.inFlight !== undefined;
  }

  /** The lease is on its way back to the store. */
  get isReleasing(): boolean {
    return this.#log.inFlight?.release === true;
  }

  /** What is kept of the task, or about to be. */
  get bytes(): number {
    return this.#log.bytes;
  }

  /** Counts what is about to be kept of it; returns why that is too much. */
  grow(bytes: number): string | undefined {
    this.#log.bytes += bytes;
    const { task } = this.#context.limits;
    return this.bytes > task ? statusText("taskTooLong", task) : this.#tasks.grow(this, bytes);
  }

  /** A promise when the run is so far ahead of the store that it should wait: in events, or in what they hold. */
  get backlog(): Promise<void> | undefined {
    return this.#log.isAhead(this.#context.limits.pendingEvents) ? this.whenFlushed() : undefined;
  }

  /** Adds an event to the log. Whatever comes after the terminal event is dropped and counted. */
  push(event: TaskEvent, extras: EventExtras = NO_EXTRAS): void {
    const { limits, meter } = this.#context;
    if (this.closed || isTerminal(this.state)) meter.count("events_dropped_after_terminal");
    else if (this.#log.add(event, extras, limits.mergeAfter)) this.#markDirty();
    else meter.count("events_merged");
  }

  pushStatus(state: TaskState, message?: MessageDraft, metadata?: JsonObject, extras?: EventExtras): void {
    this.push(statusEvent(this.#context, this, state, message, metadata), extras);
  }

  /** Writes the terminal event; a run that still continues is ignored from here. */
  end(state: TaskState, message?: MessageDraft): void {
    this.#turns.length = 0;
    this.pushStatus(state, message);
    this.decide();
  }

  /** Resolves when everything pushed so far is durable; rejects if it never will be. */
  whenFlushed(): Promise<void> {
    if (this.lostError !== undefined) return Promise.reject(this.lostError);
    return this.closed ? Promise.resolve() : this.#log.whenFlushed();
  }

  /** For the committer: the write that brings the store up to date; undefined if it is, or if one is under way. */
  takeWrite(): Submit | Append | undefined {
    if (this.closed) return undefined;
    const write = this.#log.take(this.#isResting);
    if (write === undefined) return undefined;
    const { node } = this.#context;
    if (this.phase === "new") return toSubmit(this, write, node);
    return toAppend(this, write, this.phase === "taking" ? node : undefined);
  }

  /** By the committer: the write is durable. */
  onCommitted(fence: number): void {
    const written = this.#log.commit();
    if (written === undefined) return;
    const { draft, entries, release } = written;
    for (const { number, received } of entries) {
      const queued = received && this.#turns.find(({ message }) => message === received);
      if (queued !== undefined) queued.number = number;
    }
    const isEnded = isTerminal(this.fold.status.state);
    this.enter(isEnded ? "ended" : release ? "released" : "leased", fence);
    for (const { resolve } of draft.flushed) resolve();
    if (this.closed) for (const { reject } of this.#log.clear()) reject(taskEndedError(this.id));
    if (release) this.notify("released");
    if (this.#isSettled) this.notify("settled");
    this.#tasks.onCommitted(this, entries);
    if (this.#log.hasContent || this.#isResting) this.#markDirty();
  }

  /** By the committer. After a `repeated` write the first try may have succeeded, with its answer lost. */
  onRefused(result: RefusedWrite, repeated: boolean): void {
    this.#tasks.onRefused(this, result, repeated);
  }

  /** Whether these entries of the log are the write whose answer was lost. */
  matchesInFlightWrite(entries: readonly LogEntry[]): boolean {
    const own = this.#log.inFlight?.entries ?? [];
    return own.length > 0 && own.every((entry, index) => isSameEntry(entry, entries[index]));
  }

  /** The message whose idempotency claim is in the write under way. */
  get claimedMessage(): Message | undefined {
    return this.#log.inFlight?.draft.events.find((event) => event.claim !== undefined)?.received;
  }

  /** The write was refused because this message, which was recognised too late, came before: it gets no turn. */
  dropMessage(message: Message): void {
    const queued = this.#turns.findIndex((turn) => turn.message === message);
    if (queued >= 0) this.#turns.splice(queued, 1);
    this.#retry(message);
  }

  /** The write was not made but may succeed later, without `dropped`. */
  #retry(dropped?: Message): void {
    const refused = this.#log.putBack(dropped);
    if (refused === undefined) return;
    // Requests that waited for the release look again.
    if (refused.release) this.notify("released");
    this.#markDirty();
  }

  /** Takes in what another node wrote, before a write that was refused for it. Its messages get their turns in the order of the log. */
  absorb(entries: readonly LogEntry[]): void {
    this.#retry();
    for (const entry of entries) this.fold.apply(entry);
    if (isTerminal(this.fold.status.state)) {
      this.enter("ended");
      this.#turns.length = 0;
      for (const { reject } of this.#log.clear()) reject(taskEndedError(this.id));
      this.#log.rebase(false);
      this.notify("settled");
      this.decide();
      return;
    }
    const turns: QueuedTurn[] = [];
    for (const entry of entries) {
      if (entry.received !== undefined) turns.push(toStoredTurn(this.owner, entry.received, entry));
    }
    this.#log.rebase(turns.length > 0);
    if (turns.length === 0) return;
    this.decide();
    const unwritten = this.#turns.findIndex(({ number }) => number === undefined);
    this.#turns.splice(unwritten < 0 ? this.#turns.length : unwritten, 0, ...turns);
  }

  #markDirty(): void {
    this.#tasks.committer.markDirty(this);
  }
}
