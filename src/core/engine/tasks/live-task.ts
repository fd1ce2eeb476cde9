import type { LogEntry } from "../../model/event.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import { statusText } from "../../model/status-texts.ts";
import { isTerminal, STATE_CLASS, type TaskState } from "../../model/task.ts";
import type { MessageDraft } from "../agent.ts";
import type { ServedAgent } from "../concurrency.ts";
import { type QueuedTurn, toStoredTurn } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import type { Committer, RefusedWrite } from "./committer.ts";
import { statusEvent } from "./task-events.ts";
import { TaskLog, type TaskLogOptions } from "./task-log.ts";
import type { EventExtras } from "./task-write.ts";

export interface LiveTaskOptions extends TaskLogOptions {
  readonly attempt: number;
  /** A caller knows the task: it can no longer be taken back. */
  readonly visible: boolean;
}

/** The one that keeps this node's live tasks and learns what becomes of them. */
export interface LiveTaskKeeper {
  onCommitted(task: LiveTask, entries: readonly LogEntry[]): void;
  onRefused(task: LiveTask, result: RefusedWrite, repeated: boolean): void;
  onLost(task: LiveTask): void;
  /** The task is about to take up that much more; returns why it must not. */
  grow(task: LiveTask, bytes: number): string | undefined;
}

/** A task this node runs: its log, the messages that wait for their turn, and what its callers wait for. */
export class LiveTask extends TaskLog {
  readonly served: ServedAgent;
  readonly attempt: number;
  /** When this node took the task up. */
  readonly startedAt: number;
  readonly #keeper: LiveTaskKeeper;
  /** The first is the current turn's while it runs. */
  readonly #turns: QueuedTurn[] = [];
  #active = false;
  #messageBytes: number;
  #visible: boolean;
  #onReveal: (() => void) | undefined;
  #onTurnAdded: (() => void) | undefined;
  /** Undefined while it is open whether the answer is this task; then null, or the message that is the answer. */
  #decision: Message | null | undefined;
  #refusal: RefusedWrite["refusal"] | undefined;
  #handedOver = false;

  constructor(
    context: EngineContext,
    committer: Committer,
    keeper: LiveTaskKeeper,
    served: ServedAgent,
    options: LiveTaskOptions,
  ) {
    super(context, committer, served.name, options);
    this.#keeper = keeper;
    this.served = served;
    this.attempt = options.attempt;
    this.startedAt = context.clock.now();
    this.#messageBytes = options.fold.historySize;
    this.#visible = options.visible;
    this.#decision = options.origin === "new" ? undefined : null;
  }

  /** Its turns are running or in line to run. */
  get active(): boolean {
    return this.#active;
  }

  /** False if it is active already. */
  activate(): boolean {
    if (this.#active) return false;
    this.#active = true;
    return true;
  }

  /** No turn is left: the lease goes back unless the task ends, or another message comes first. */
  deactivate(): void {
    this.#active = false;
    if (!this.closed && !isTerminal(this.state)) this.requestRelease();
  }

  /** Bytes of messages that its owner has in memory for it. */
  get messageBytes(): number {
    return this.#messageBytes;
  }

  addMessageBytes(bytes: number): void {
    this.#messageBytes += bytes;
  }

  get openTurns(): number {
    return this.#turns.length;
  }

  get currentTurn(): QueuedTurn | undefined {
    return this.#turns[0];
  }

  addTurn(turn: QueuedTurn): void {
    this.#turns.push(turn);
    this.#onTurnAdded?.();
  }

  /** For the turn that runs. */
  onTurnAdded(listener: () => void): void {
    this.#onTurnAdded = listener;
  }

  endTurn(): void {
    this.#turns.shift();
  }

  /** A caller's message arrived before and was recognised too late: it gets no turn. */
  dropTurn(message: Message): void {
    const queued = this.#turns.findIndex((turn) => turn.message === message);
    if (queued >= 0) this.#turns.splice(queued, 1);
  }

  pushStatus(state: TaskState, message?: MessageDraft, metadata?: JsonObject, extras?: EventExtras): void {
    this.push(statusEvent(this.context, this, state, message, metadata), extras);
  }

  /** Writes the terminal event; a run that still continues is ignored from here. */
  end(state: TaskState, message?: MessageDraft): void {
    this.#turns.length = 0;
    this.pushStatus(state, message);
    this.decide();
  }

  /** A caller knows the task: it can no longer be taken back. */
  get visible(): boolean {
    return this.#visible;
  }

  show(): void {
    this.#visible = true;
  }

  /** Shows the task though the agent has given no sign; a message it returns then completes the task. */
  reveal(): void {
    // Closed before anything was decided: the task is just being taken back for a message.
    if (this.closed) return;
    this.#visible = true;
    this.#onReveal?.();
    this.decide();
  }

  /** For a run that has given no sign yet. */
  onReveal(listener: (() => void) | undefined): void {
    this.#onReveal = listener;
  }

  /** The first decision counts: once the answer is the task, it stays the task. */
  decide(message?: Message): void {
    if (this.#decision !== undefined) return;
    this.#decision = message ?? null;
    this.notify("decided");
    if (message !== undefined) this.notify("settled");
  }

  /** Resolves with the message of an agent that answered without a task, or undefined when the answer is the task. */
  async whenDecided(): Promise<Message | undefined> {
    if (this.#decision === undefined) await this.waiters().waitFor("decided");
    return this.#decision ?? undefined;
  }

  /**
   * Resolves when the committed task is terminal or interrupted, or with the message that took its place. Rejects if
   * this node lost the task on the way.
   */
  whenSettled(): Promise<Message | undefined> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (!this.#isSettled()) this.waiters().on("settled", settle);
        else if (this.lostError !== undefined) reject(this.lostError);
        else resolve(this.#decision ?? undefined);
      };
      settle();
    });
  }

  /** Resolves when the committed task is terminal. Rejects if this node lost the task on the way. */
  async whenEnded(): Promise<void> {
    while (this.fold.number === 0 || !isTerminal(this.fold.status.state)) {
      if (this.lostError !== undefined) throw this.lostError;
      await this.waiters().waitFor("settled");
    }
  }

  /** Counts what is about to be kept of it; returns why that is too much. */
  grow(bytes: number): string | undefined {
    this.countBytes(bytes);
    const { task } = this.context.limits;
    return this.bytes > task ? statusText("taskTooLong", task) : this.#keeper.grow(this, bytes);
  }

  onLost(listener: () => void): void {
    if (this.lostError === undefined) this.waiters().on("lost", listener);
    else listener();
  }

  /** Resolves when a task on its way out of this node has left it, parked or answered by a message, or stays after all. */
  async whenGone(): Promise<void> {
    if (this.isReleasing) await this.waiters().waitFor("released");
    else await this.whenDecided();
  }

  /** Set if the task was lost to a refused write: then nothing of that write was made. */
  get lostRefusal(): RefusedWrite["refusal"] | undefined {
    return this.#refusal;
  }

  /** Another node continues, as readers of the log see. */
  get isHandedOver(): boolean {
    return this.#handedOver;
  }

  handOver(reason: Error): void {
    this.#handedOver = true;
    this.markLost(reason);
  }

  /** The store refused a write for good. */
  loseTo(refusal: RefusedWrite["refusal"], error: Error): void {
    if (this.lostError === undefined) this.#refusal = refusal;
    this.markLost(error);
  }

  /** Takes in what another node wrote. Its messages get their turns in the order of the log. */
  absorb(entries: readonly LogEntry[]): void {
    const turns: QueuedTurn[] = [];
    for (const entry of entries) {
      if (entry.received !== undefined) turns.push(toStoredTurn(this.owner, entry.received, entry));
    }
    this.rebase(entries, turns.length > 0);
    if (turns.length > 0) this.#visible = true;
    if (this.closed) {
      this.#turns.length = 0;
      this.decide();
      return;
    }
    const unwritten = this.#turns.findIndex(({ number }) => number === undefined);
    this.#turns.splice(unwritten < 0 ? this.#turns.length : unwritten, 0, ...turns);
  }

  onRefused(result: RefusedWrite, repeated: boolean): void {
    this.#keeper.onRefused(this, result, repeated);
  }

  protected afterCommit(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      if (entry.received === undefined) continue;
      const queued = this.#turns.find(({ message }) => message === entry.received);
      if (queued !== undefined) queued.number = entry.number;
    }
    this.#keeper.onCommitted(this, entries);
  }

  protected afterLoss(): void {
    this.decide();
    this.#keeper.onLost(this);
  }

  #isSettled(): boolean {
    if (this.lostError !== undefined || (this.#decision !== undefined && this.#decision !== null)) return true;
    return this.fold.number > 0 && STATE_CLASS[this.fold.status.state] !== "active";
  }
}
