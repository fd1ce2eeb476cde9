import { ProtocolError, taskIdTaken, taskNotFound } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import { messageSize } from "../../model/size.ts";
import { statusText } from "../../model/status-texts.ts";
import { isTerminal } from "../../model/task.ts";
import { TransientMap } from "../../model/transient.ts";
import type { Lease, Scope, TaskHead } from "../../store/contract.ts";
import { OwnerLoads, type ServedAgent } from "../concurrency.ts";
import { type QueuedTurn, taskEndedError } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { DuplicateSend, fromHead, isSameScope } from "../request-identity.ts";
import { Committer, type RefusedWrite } from "./committer.ts";
import { LiveTask, type LiveTaskOptions } from "./live-task.ts";
import { LogReaders } from "./log-readers.ts";
import { ParkedTasks } from "./parked-tasks.ts";
import { statusEvent, textDraft } from "./task-events.ts";

/** Tasks asked about per beat, in turn. */
const SWEEP_BATCH_SIZE = 500;

/** The tasks this node runs. Compares them with the store when a write was refused or another node may have written. */
export class LiveTasks {
  readonly committer: Committer;
  readonly readers: LogReaders;
  readonly ownerLoads = new OwnerLoads();
  /** Tasks that the store may count as this node's though nothing runs them, because the store or the engine failed. */
  readonly orphans = new Set<string>();
  readonly #context: EngineContext;
  readonly #onWork: (live: LiveTask) => void;
  readonly #onGone: (live: LiveTask, reason: Error) => void;
  readonly #live = new TransientMap<string, LiveTask>();
  readonly #parked = new ParkedTasks();
  readonly #duplicates = new WeakMap<Message, DuplicateSend>();
  /** What is kept of all of them. */
  #bytes = 0;
  #idle: (() => void)[] = [];
  #sweepPosition = 0;

  /**
   * `onWork`: a message from another node waits, and no turn of the task runs. `onGone`: the task is no longer this
   * node's, so that whatever still runs for it is to stop.
   */
  constructor(
    context: EngineContext,
    onWork: (live: LiveTask) => void,
    onGone: (live: LiveTask, reason: Error) => void,
  ) {
    this.#context = context;
    this.#onWork = onWork;
    this.#onGone = onGone;
    this.committer = new Committer(context);
    this.readers = new LogReaders(context);
  }

  get(id: string): LiveTask | undefined {
    return this.#live.get(id);
  }

  /**
   * The task if it is of that scope. For a task of another one the store is asked next, as for one that never was: the
   * two must not be distinguishable by how long an answer takes.
   */
  findInScope(id: string, scope: Scope): LiveTask | undefined {
    const live = this.#live.get(id);
    return live !== undefined && isSameScope(live, scope) ? live : undefined;
  }

  get size(): number {
    return this.#live.size;
  }

  all(): readonly LiveTask[] {
    return this.#live.values();
  }

  /** Takes charge of a task; `bytes` are those of the message that it is taken up for. */
  add(served: ServedAgent, options: LiveTaskOptions, bytes = 0): LiveTask {
    const live = new LiveTask(this.#context, this, served, options);
    this.orphans.delete(live.id);
    this.#live.set(live.id, live);
    this.#bytes += live.bytes;
    live.messageBytes += bytes;
    this.ownerLoads.add(live.owner, 1, live.messageBytes);
    return live;
  }

  /**
   * Takes charge of a task whose lease this node was given, with the turns that are open up to where it is taken up;
   * undefined if it is in charge of it already.
   */
  async adopt(
    served: ServedAgent,
    { head, fence }: Lease,
    readTurns?: (until: number) => Promise<readonly QueuedTurn[]>,
  ): Promise<LiveTask | undefined> {
    const known = this.#live.get(head.id);
    // The lease went to another node and came back before anything here noticed.
    if (known !== undefined && known.fence < fence) this.lose(known, "fenced");
    const fold = await this.unpark(head);
    const turns = await readTurns?.(fold.number);
    if (this.#live.has(head.id)) return undefined;
    const live = this.add(served, { ...fromHead(head), fold, fence, phase: "leased", visible: true });
    for (const turn of turns ?? []) live.addTurn(turn);
    return live;
  }

  /** Ends a task that is not live here, and may be too large to be read. False: something came between. */
  async failStored(head: TaskHead, reason: string): Promise<boolean> {
    const { id, fence, number } = head;
    const event = statusEvent(this.#context, head, "TASK_STATE_FAILED", textDraft(reason));
    const entries = [LogEntry.of(number + 1, event)];
    const { status } = event.statusUpdate;
    const { ok } = await this.committer.write({ kind: "append", id, expect: number, fence, entries, status });
    if (ok) this.#context.store.wakeups.publish({ log: [id] });
    return ok;
  }

  /** Counts a message against the owner of a task that runs here, until it no longer does. */
  addMessageBytes(live: LiveTask, bytes: number): void {
    if (this.#live.get(live.id) !== live) return;
    live.messageBytes += bytes;
    this.ownerLoads.add(live.owner, 0, bytes);
  }

  /** Back to the tasks that wait for their caller. */
  park(fold: TaskFold, bytes: number): void {
    this.#parked.put(fold, bytes);
  }

  /** A stored task as it stands now. */
  async unpark(head: TaskHead): Promise<TaskFold> {
    const known = this.#parked.take(head.id, head.number);
    if (known !== undefined) return known;
    const { historyPage } = this.#context.limits;
    const snapshot = await this.#context.store.snapshot(head.id, { history: historyPage, artifacts: true });
    if (snapshot === undefined) throw taskNotFound(head.id);
    return TaskFold.from(snapshot.task, snapshot.number, historyPage);
  }

  /** Set for a received message that turned out to be a repeat after it was taken in. */
  findDuplicate(message: Message): DuplicateSend | undefined {
    return this.#duplicates.get(message);
  }

  /** Resolves when nothing runs here. */
  whenIdle(): Promise<void> {
    if (this.#live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  /** Gives every task up without an event in its log: the node that serves it next applies the crash policy. */
  abandonAll(reason: Error): void {
    for (const live of this.#live.values()) live.lose(reason);
  }

  /** Looks whether other nodes wrote to some of the tasks, in turn, in case a wake-up was lost. */
  async sweep(): Promise<void> {
    const all = this.#live.values().filter((live) => live.fold.number > 0 && !live.isWriting);
    const start = all.length <= SWEEP_BATCH_SIZE ? 0 : this.#sweepPosition % all.length;
    this.#sweepPosition = start + SWEEP_BATCH_SIZE;
    const some = all.slice(start, start + SWEEP_BATCH_SIZE);
    if (some.length === 0) return;
    const numbers = await this.#context.store.numbers(some.map(({ id }) => id));
    for (const [index, live] of some.entries()) {
      const number = numbers[index] ?? 0;
      if (number === 0 || number > live.fold.number) await this.catchUp(live);
    }
  }

  /** Takes in what other nodes wrote. While a write is under way that is left to its refusal. */
  async catchUp(live: LiveTask): Promise<void> {
    const { number } = live.fold;
    if (number === 0 || live.closed || live.isWriting) return;
    const { store } = this.#context;
    const head = await store.head(live.id);
    const [read] = await store.read([{ id: live.id, after: number }], 1_000);
    if (live.closed || live.isWriting || live.fold.number !== number) return;
    const entries = read?.kind === "entries" ? read.entries : [];
    if (head === undefined) this.lose(live, "missing");
    else if (head.fence !== live.fence && !isTerminal(head.status.state)) this.lose(live, "fenced");
    else if (entries.length > 0) this.#absorb(live, entries);
  }

  onCommitted(live: LiveTask, entries: readonly LogEntry[]): void {
    this.readers.cache(live.id, entries);
    if (live.closed) this.#close(live);
  }

  onRefused(live: LiveTask, result: RefusedWrite, repeated: boolean): void {
    if (repeated || result.refusal === "position" || result.refusal === "terminal") {
      this.#compare(live, result, repeated).catch((error: unknown) => {
        live.lose(error instanceof Error ? error : new Error(String(error)));
      });
    } else this.#takeRefusal(live, result);
  }

  /** Where too much is kept of all tasks, one that is smaller than most may still grow. */
  grow(live: LiveTask, bytes: number): string | undefined {
    if (this.#live.get(live.id) !== live) return undefined;
    this.#bytes += bytes;
    const isLarge = live.bytes * this.#live.size >= this.#bytes;
    return isLarge && this.#bytes > this.#context.liveBytes ? statusText("tasksTooLarge") : undefined;
  }

  onLost(live: LiveTask, wasLeased: boolean): void {
    // A database that was replaced by an older copy of it refuses what it still counts as this node's.
    const isForgotten = wasLeased && (live.lostRefusal === "position" || live.lostRefusal === "fenced");
    if ((live.lostRefusal === undefined || isForgotten) && !live.isHandedOver) this.orphans.add(live.id);
    this.drop(live);
    this.#onGone(live, live.lostError ?? new ProtocolError("UNAVAILABLE", "The run lost its task."));
  }

  drop(live: LiveTask): void {
    if (this.#live.get(live.id) !== live) return;
    this.#live.delete(live.id);
    this.#bytes -= live.bytes;
    this.ownerLoads.add(live.owner, -1, -live.messageBytes);
    if (this.#live.size > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  #close(live: LiveTask): void {
    const { state } = live.fold.status;
    if (!isTerminal(state)) this.park(live.fold, live.bytes);
    this.drop(live);
    const ms = this.#context.clock.now() - live.startedAt;
    this.#context.log.info({ task: live.id, agent: live.agent, state, events: live.fold.number, ms }, "Task finished");
  }

  /**
   * The log is not where this task left it. Either the refused write is in it already and only the answer was lost, or
   * another node wrote: then that is taken in and the write made again after it.
   */
  async #compare(live: LiveTask, result: RefusedWrite, repeated: boolean): Promise<void> {
    const [read] = await this.#context.store.read([{ id: live.id, after: live.fold.number }], 1_000);
    if (live.closed) return;
    const entries = read?.kind === "entries" ? read.entries : [];
    if (repeated && live.matchesInFlightWrite(entries)) {
      const head = await this.#context.store.head(live.id);
      if (live.closed) return;
      live.onCommitted(live.isLeased ? live.fence : (head?.fence ?? live.fence));
      this.#context.store.wakeups.publish({ log: [live.id] });
      // The write was made, and since then another node may have taken the task, or this one again.
      const isOurs = head?.node === this.#context.node && head.fence === live.fence;
      if (!live.closed && !isOurs) this.lose(live, "fenced");
      return;
    }
    const last = entries.at(-1)?.state;
    const isExplained =
      result.refusal === "terminal" ? last !== undefined && isTerminal(last) : result.refusal === "position";
    // One that is just being taken was taken by another node, or its message would get another one's turn.
    if (entries.length === 0 || !isExplained || live.isBeingTaken) this.#takeRefusal(live, result);
    else this.#absorb(live, entries);
  }

  #absorb(live: LiveTask, entries: readonly LogEntry[]): void {
    live.absorb(entries);
    this.readers.cache(live.id, entries);
    if (live.closed) {
      this.#onGone(live, taskEndedError(live.id));
      this.#close(live);
      return;
    }
    for (const { received } of entries) if (received !== undefined) this.addMessageBytes(live, messageSize(received));
    if (live.openTurns > 0 && !live.active && !isTerminal(live.state)) this.#onWork(live);
  }

  #takeRefusal(live: LiveTask, result: RefusedWrite): void {
    if (result.refusal === "duplicate") this.#refuseDuplicate(live, new DuplicateSend(result.record));
    else this.lose(live, result.refusal);
  }

  /** The store will take no more writes of this node for the task. */
  lose(live: LiveTask, refusal: RefusedWrite["refusal"]): void {
    this.#context.meter.count("runs_fenced");
    this.#context.log.warn({ task: live.id, refusal }, "The run lost its task.");
    live.lose(toLostError(live.id, refusal), { refusal });
  }

  /** A message that came before must not harm the task it came to again: only its sender learns of it. */
  #refuseDuplicate(live: LiveTask, error: DuplicateSend): void {
    const message = live.claimedMessage;
    if (message === undefined || live.fold.number === 0 || live.isBeingTaken) {
      live.lose(error, { refusal: "duplicate" });
      return;
    }
    this.#duplicates.set(message, error);
    live.dropMessage(message);
  }
}

function toLostError(taskId: string, refusal: RefusedWrite["refusal"]): ProtocolError {
  if (refusal === "terminal") return taskEndedError(taskId);
  if (refusal === "exists") return taskIdTaken(taskId);
  return new ProtocolError("UNAVAILABLE", "The task is being worked on elsewhere; try again.", {
    metadata: { taskId },
    retryAfter: 1,
  });
}
