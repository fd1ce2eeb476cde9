import { ProtocolError, taskNotFound } from "../../model/errors.ts";
import type { LogEntry } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import { statusText } from "../../model/status-texts.ts";
import { isTerminal, type TaskState } from "../../model/task.ts";
import type { IdempotencyRecord, Scope, TaskHead, WriteResult } from "../../store/contract.ts";
import type { Agent } from "../agent.ts";
import { OwnerLoads, type RunQueue } from "../concurrency.ts";
import { toStoredTurn } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { isSameScope } from "../request-identity.ts";
import { type CommitListener, Committer } from "../tasks/committer.ts";
import { LiveTask, type LiveTaskOptions, type QueuedTurn } from "../tasks/live-task.ts";
import { LogReaders } from "../tasks/log-readers.ts";
import { ParkedTasks } from "../tasks/parked-tasks.ts";
import { RunningTurn } from "./running-turn.ts";
import { EventFactory, TurnRun, textDraft } from "./turn-run.ts";

export interface ServedAgent {
  readonly name: string;
  agent: Agent;
  readonly queue: RunQueue;
}

/** A send whose key the store already knows. */
export class DuplicateSend extends Error {
  readonly record: IdempotencyRecord;
  constructor(record: IdempotencyRecord) {
    super("This send was made before.");
    this.record = record;
  }
}

/** One run under way. */
interface ActiveRun {
  readonly live: LiveTask;
  /** Undefined between two turns. */
  run: TurnRun | undefined;
  cancelGraceTimer: (() => void) | undefined;
  readonly leaveQueue: () => void;
}

/** The tasks this process is at work on: starts their turns, ends them, and hears what the store made of their writes. */
export class Runner implements CommitListener {
  readonly committer: Committer;
  readonly readers: LogReaders;
  readonly ownerLoads = new OwnerLoads();
  readonly #context: EngineContext;
  readonly #live = new Map<string, LiveTask>();
  readonly #running = new Map<string, ActiveRun>();
  readonly #parked: ParkedTasks;
  readonly #repeats = new WeakMap<Message, DuplicateSend>();
  /** Tasks the store says are ours though nobody runs them, because the store failed us. Taken up again with time. */
  readonly orphans = new Set<string>();
  #idle: (() => void)[] = [];

  constructor(context: EngineContext) {
    this.#context = context;
    this.committer = new Committer(context, this);
    this.readers = new LogReaders(context);
    this.#parked = new ParkedTasks();
  }

  get(id: string): LiveTask | undefined {
    return this.#live.get(id);
  }

  /**
   * The task if it is of that scope. For a task of another one the store is asked next, as for one that never was: how
   * long an answer takes is not to tell them apart.
   */
  findInScope(id: string, scope: Scope): LiveTask | undefined {
    const live = this.#live.get(id);
    return live !== undefined && isSameScope(live, scope) ? live : undefined;
  }

  get size(): number {
    return this.#live.size;
  }

  /** Takes charge of a task. Its turns start with `begin`. */
  add(options: LiveTaskOptions, state: TaskState): LiveTask {
    const live = new LiveTask(this.#context, this.committer, options, state);
    this.orphans.delete(live.id);
    this.#live.set(live.id, live);
    this.ownerLoads.add(live.owner, 1, live.messageBytes);
    return live;
  }

  /** Counts a message against the owner of a task that is worked on here, until it no longer is. */
  addMessageBytes(live: LiveTask, bytes: number): void {
    if (this.#live.get(live.id) !== live) return;
    live.messageBytes += bytes;
    this.ownerLoads.add(live.owner, 0, bytes);
  }

  /** Back to the tasks that wait for their caller. */
  park(fold: TaskFold): void {
    this.#parked.put(fold);
  }

  /** A stored task as it stands now, for adoption. */
  async unpark(head: TaskHead): Promise<TaskFold> {
    const known = this.#parked.take(head.id, head.number);
    if (known !== undefined) return known;
    const { historyPage } = this.#context.limits;
    const snapshot = await this.#context.store.snapshot(head.id, { history: historyPage, artifacts: true });
    if (snapshot === undefined) throw taskNotFound(head.id);
    return TaskFold.from(snapshot.task, snapshot.number, historyPage);
  }

  /**
   * Starts the turns of a task, at once or when its agent has room. Unless they may start `early`, they wait until what
   * was pushed so far is durable.
   */
  start(live: LiveTask, served: ServedAgent, early = false): void {
    live.active = true;
    if (served.queue.enter(live.owner, () => void this.#runTurns(live, served, false, true))) {
      void this.#runTurns(live, served, early, false);
    } else live.markQueued();
  }

  /** Ends a task from outside. An agent at work is asked first and cut off after the grace time. */
  cancel(live: LiveTask): void {
    const running = this.#running.get(live.id);
    if (running?.run === undefined) {
      this.end(live, "TASK_STATE_CANCELED");
      return;
    }
    running.run.cancel(new ProtocolError("UNSUPPORTED_OPERATION", "The task was cancelled."));
    if (running.cancelGraceTimer === undefined) this.#rememberCancel(live);
    running.cancelGraceTimer ??= this.#context.clock.after(this.#context.times.cancelGraceMs, () => {
      this.end(live, "TASK_STATE_CANCELED");
      running.leaveQueue();
    });
  }

  /** A crash before the agent has stopped must not bring the task back. */
  #rememberCancel(live: LiveTask): void {
    this.committer.write({ kind: "request-cancel", id: live.id }).catch((error: unknown) => {
      this.#context.log.warn({ err: error, task: live.id }, "A cancellation could not be stored.");
    });
  }

  /** Writes the terminal event; a run that is still going on is ignored from here. */
  end(live: LiveTask, state: TaskState, why?: string): void {
    live.turns.length = 0;
    const message = why === undefined ? undefined : textDraft(why);
    live.push(new EventFactory(this.#context, live).status(state, message));
    live.decide();
  }

  /** Resolves when nothing is running here. */
  whenIdle(): Promise<void> {
    if (this.#live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  /** Stops every run without a word in the log: whoever serves these tasks next applies the crash policy. */
  abandonAll(reason: Error): void {
    for (const running of this.#running.values()) running.run?.cancel(reason);
    for (const live of [...this.#live.values()]) live.markLost(reason);
  }

  onLost(live: LiveTask): void {
    const running = this.#running.get(live.id);
    running?.run?.cancel(live.lostError ?? new ProtocolError("UNAVAILABLE", "The run lost its task."));
    running?.leaveQueue();
    this.#drop(live);
  }

  onAbandoned(live: LiveTask): void {
    this.orphans.add(live.id);
  }

  onCommitted(live: LiveTask, entries: readonly LogEntry[]): void {
    this.readers.cache(live.id, entries);
    if (!live.closed) return;
    const { state } = live.fold.status;
    if (!isTerminal(state)) this.park(live.fold);
    this.#drop(live);
    const ms = this.#context.clock.now() - live.startedAt;
    this.#context.log.info({ task: live.id, agent: live.agent, state, events: live.fold.number, ms }, "task");
  }

  onRefused(live: LiveTask, result: Extract<WriteResult, { ok: false }>, repeated: boolean): void {
    if (repeated || result.refusal === "position") void this.#compare(live, result);
    else this.#takeRefusal(live, result);
  }

  #takeRefusal(live: LiveTask, result: Extract<WriteResult, { ok: false }>): void {
    if (result.refusal === "duplicate") {
      this.#refuseRepeat(live, new DuplicateSend(result.record));
      return;
    }
    this.#context.meter.count("runs_fenced");
    this.#context.log.warn({ task: live.id, refusal: result.refusal }, "The run lost its task.");
    live.markLost(toLostError(live.id, result.refusal));
  }

  /** Set for a received message that turned out to be a repeat after it was taken in. */
  findDuplicate(message: Message): DuplicateSend | undefined {
    return this.#repeats.get(message);
  }

  /** A message that came before must not harm the task it came to again: only its sender is told. */
  #refuseRepeat(live: LiveTask, error: DuplicateSend): void {
    const message = live.claimedMessage;
    const queued = live.turns.findIndex((turn) => turn.message === message);
    if (message === undefined || live.fold.number === 0 || !live.active) {
      live.markLost(error);
      return;
    }
    if (queued >= 0) live.turns.splice(queued, 1);
    this.#repeats.set(message, error);
    live.retry(message);
  }

  async #runTurns(live: LiveTask, served: ServedAgent, early: boolean, waited: boolean): Promise<void> {
    const running: ActiveRun = {
      live,
      run: undefined,
      cancelGraceTimer: undefined,
      leaveQueue: once(() => served.queue.leave()),
    };
    this.#running.set(live.id, running);
    try {
      if (waited && !live.closed) live.markStarted();
      if (!early) await live.whenFlushed();
      while (!live.closed && !isTerminal(live.state) && live.turns.length > 0) {
        const queued = live.turns[0] as QueuedTurn;
        if (queued.number === undefined) {
          await live.whenFlushed();
          if (live.turns[0] !== queued) continue;
        }
        live.beginTurn(queued.number ?? 1);
        // The turn before asked what this message, which came meanwhile, answers.
        if (live.state === "TASK_STATE_INPUT_REQUIRED") {
          live.push(new EventFactory(this.#context, live).status("TASK_STATE_WORKING"));
        }
        const reply = await this.#runTurn(running, served.agent, queued);
        live.turns.shift();
        if (reply !== undefined) await this.#answer(live, reply);
      }
    } catch (error) {
      if (live.lostError === undefined) {
        this.#context.log.error({ err: error, task: live.id }, "A run ended in an error of the engine.");
        live.markLost(new ProtocolError("INTERNAL_ERROR", "The run broke off.", { cause: error }));
      }
    } finally {
      running.cancelGraceTimer?.();
      running.leaveQueue();
      if (this.#running.get(live.id) === running) this.#running.delete(live.id);
    }
    live.active = false;
    if (!live.closed && !isTerminal(live.state)) live.requestRelease();
  }

  /** One message, one turn. Returns the message of an agent that answered without a task. */
  async #runTurn(running: ActiveRun, agent: Agent, queued: QueuedTurn): Promise<Message | undefined> {
    const { live } = running;
    const turn = new RunningTurn(this.#context, this.committer, live, queued, queued.caller);
    const run = new TurnRun(this.#context, live, agent, turn, { onStarted: () => live.decide() });
    running.run = run;
    if (live.state === "TASK_STATE_SUBMITTED") this.committer.addParticipant(run);
    const { timeoutMs } = agent;
    const stopTimer =
      timeoutMs === undefined
        ? undefined
        : this.#context.clock.after(timeoutMs, () => {
            run.cancel(new ProtocolError("UNAVAILABLE", "The turn took too long."));
            this.end(live, "TASK_STATE_FAILED", statusText("agentTimedOut", timeoutMs / 1000));
            running.leaveQueue();
          });
    const end = await run.drive();
    stopTimer?.();
    running.run = undefined;
    return end.kind === "message" ? end.message : undefined;
  }

  /** The agent answered with a plain message: the task that was kept for it is taken back, unless somebody knows it. */
  async #answer(live: LiveTask, reply: Message): Promise<void> {
    if (!live.isUnwritten) await live.whenFlushed();
    if (live.visible) {
      live.push(new EventFactory(this.#context, live).status("TASK_STATE_COMPLETED", reply));
      live.decide();
      return;
    }
    if (live.isUnwritten) live.discard();
    else if (!(await this.#discard(live, reply))) return;
    const { taskId: _, ...message } = reply;
    this.#drop(live);
    live.decide(message);
    this.#context.store.wakeups.publish({ log: [live.id] });
  }

  async #discard(live: LiveTask, { taskId: _, ...reply }: Message): Promise<boolean> {
    // Closed first: whoever asks for the task meanwhile waits, and then finds that there is none.
    live.closed = true;
    try {
      const result = await this.committer.write({ kind: "discard", id: live.id, fence: live.fence, reply });
      // Gone already: an earlier try did it, and only its answer was lost.
      const done = result.ok || result.refusal === "missing";
      if (!done) live.markLost(toLostError(live.id, result.refusal));
      return done;
    } catch (error) {
      this.orphans.add(live.id);
      live.markLost(error instanceof Error ? error : new Error(String(error)));
      return false;
    }
  }

  /**
   * The log is not where this task left it. Either the refused write is in it already and only the answer was lost, or
   * somebody else wrote: then that is read up and the write tried again after it.
   */
  async #compare(live: LiveTask, result: Extract<WriteResult, { ok: false }>): Promise<void> {
    try {
      const [read] = await this.#context.store.read([{ id: live.id, after: live.fold.number }], 1_000);
      const entries = read?.kind === "entries" ? read.entries : [];
      if (live.matchesInFlightWrite(entries)) {
        const head = await this.#context.store.head(live.id);
        this.onCommitted(live, live.applyCommit(head?.fence ?? live.fence));
        this.#context.store.wakeups.publish({ log: [live.id] });
        return;
      }
      if (result.refusal !== "position" || entries.length === 0) {
        this.#takeRefusal(live, result);
        return;
      }
      live.rebase(entries);
      for (const entry of entries) {
        if (entry.received !== undefined) live.turns.push(toStoredTurn(live.owner, entry.received, entry));
      }
      this.readers.cache(live.id, entries);
    } catch (error) {
      live.markLost(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #drop(live: LiveTask): void {
    if (this.#live.get(live.id) !== live) return;
    this.#live.delete(live.id);
    this.ownerLoads.add(live.owner, -1, -live.messageBytes);
    if (this.#live.size > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}

function toLostError(taskId: string, refusal: Exclude<WriteResult, { ok: true }>["refusal"]): ProtocolError {
  if (refusal === "terminal") {
    return new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended and takes no more messages.", {
      metadata: { taskId },
    });
  }
  if (refusal === "exists") {
    return new ProtocolError("INVALID_PARAMS", "A task with this id exists already.", { metadata: { taskId } });
  }
  return new ProtocolError("UNAVAILABLE", "The task is being worked on elsewhere; try again.", {
    metadata: { taskId },
    retryAfter: 1,
  });
}

function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
}
