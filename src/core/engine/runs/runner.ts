import { ProtocolError } from "../../model/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { Clock } from "../../model/ports.ts";
import { statusText } from "../../model/status-texts.ts";
import { isTerminal, STATE_CLASS } from "../../model/task.ts";
import { TransientMap } from "../../model/transient.ts";
import type { TaskHead } from "../../store/contract.ts";
import type { Agent } from "../agent.ts";
import type { ServedAgent } from "../concurrency.ts";
import type { QueuedTurn } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import type { Committer } from "../tasks/committer.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import { LiveTasks } from "../tasks/live-tasks.ts";
import type { LogReaders } from "../tasks/log-readers.ts";
import { textDraft } from "../tasks/task-events.ts";
import { RunningTurn } from "./running-turn.ts";
import { TurnRun } from "./turn-run.ts";

/** One run under way. */
interface ActiveRun {
  readonly live: LiveTask;
  /** Undefined between two turns. */
  run: TurnRun | undefined;
  cancelGraceTimer: (() => void) | undefined;
  /** Of the turn, if its agent has one. */
  stopTimeout: (() => void) | undefined;
  readonly leaveQueue: () => void;
}

/** Starts the turns of this node's tasks, ends them and cancels them. */
export class Runner {
  readonly tasks: LiveTasks;
  readonly committer: Committer;
  readonly readers: LogReaders;
  /** This node is about to end: new tasks are for others that share the store. */
  draining = false;
  readonly #context: EngineContext;
  readonly #running = new TransientMap<string, ActiveRun>();
  /** What agents still do about cancelled tasks that no run worked on. */
  readonly #dropping = new Set<Promise<void>>();

  constructor(context: EngineContext) {
    this.#context = context;
    this.tasks = new LiveTasks(
      context,
      (live) => this.start(live),
      (live, reason) => this.stop(live, reason),
    );
    this.committer = this.tasks.committer;
    this.readers = this.tasks.readers;
  }

  get(id: string): LiveTask | undefined {
    return this.tasks.get(id);
  }

  /**
   * Starts the turns of a task, at once or when its agent has room. Unless they may start `early`, they wait until what
   * was pushed so far is durable.
   */
  start(live: LiveTask, early = false): void {
    if (live.active) return;
    if (live.served.queue.enter(live.owner, () => void this.#runTurns(live, false))) void this.#runTurns(live, early);
    else live.queue();
  }

  isCancelling(live: LiveTask): boolean {
    return this.#running.get(live.id)?.cancelGraceTimer !== undefined;
  }

  /** Whether tasks of the agent are to be left to another node. */
  runsElsewhere({ agent }: ServedAgent): boolean {
    return this.#context.lease.isShared && (this.draining || agent.isAvailable?.() === false);
  }

  /** Ends a task from outside. An agent at work is asked first and cut off after the grace time. */
  cancel(live: LiveTask): void {
    const running = this.#running.get(live.id);
    if (running?.run === undefined) {
      live.end("TASK_STATE_CANCELED");
      this.notifyDropped(live.served, live);
      return;
    }
    running.run.cancel(new ProtocolError("UNSUPPORTED_OPERATION", "The task was cancelled."));
    if (running.cancelGraceTimer === undefined) this.#storeCancel(live);
    running.cancelGraceTimer ??= this.#context.clock.after(this.#context.times.cancelGraceMs, () => {
      live.end("TASK_STATE_CANCELED");
      running.leaveQueue();
    });
  }

  /** Resolves when nothing is left to do, for tasks or for what agents kept for them. */
  async whenIdle(): Promise<void> {
    await this.tasks.whenIdle();
    while (this.#dropping.size > 0) await Promise.all(this.#dropping);
  }

  /** No run works on the cancelled task. Its caller does not wait for what the agent does about it. */
  notifyDropped({ agent, name }: ServedAgent, task: Pick<TaskHead, "contextId" | "id" | "owner">): void {
    const { contextId, id, owner } = task;
    const { log, store } = this.#context;
    const get = async <T extends JsonValue>(key: string): Promise<T | undefined> => {
      const text = (await store.memory(id)).get(key);
      return text === undefined ? undefined : (JSON.parse(text) as T);
    };
    const dropped = { id, contextId, caller: { owner, authenticated: false }, memory: { get } };
    const dropping = agent.dropped?.(dropped).catch((error: unknown) => {
      log.warn({ err: error, task: id, agent: name }, "An agent could not drop a cancelled task.");
    });
    if (dropping === undefined) return;
    this.#dropping.add(dropping);
    void dropping.then(() => this.#dropping.delete(dropping));
  }

  /** A crash before the agent has stopped must not bring the task back. */
  #storeCancel(live: LiveTask): void {
    this.committer.write({ kind: "request-cancel", id: live.id }).catch((error: unknown) => {
      this.#context.log.warn({ err: error, task: live.id }, "A cancellation could not be stored.");
    });
  }

  /** Aborts the run of a task that is over, or no longer this node's. */
  stop(live: LiveTask, reason: Error): void {
    const running = this.#running.get(live.id);
    if (running?.live !== live) return;
    running.run?.cancel(reason);
    running.leaveQueue();
  }

  async #runTurns(live: LiveTask, early: boolean): Promise<void> {
    const running: ActiveRun = {
      live,
      run: undefined,
      cancelGraceTimer: undefined,
      stopTimeout: undefined,
      leaveQueue: once(() => live.served.queue.leave()),
    };
    this.#running.set(live.id, running);
    try {
      live.begin();
      if (!early) await live.whenFlushed();
      for (;;) {
        const queued = live.currentTurn;
        if (queued === undefined || live.closed || isTerminal(live.state)) break;
        if (queued.number === undefined) {
          await live.whenFlushed();
          if (live.currentTurn !== queued) continue;
        }
        if (queued.deadline !== undefined && queued.deadline <= this.#context.clock.now()) {
          live.end("TASK_STATE_FAILED", textDraft(statusText("deadlinePassed")));
          break;
        }
        live.beginTurn(queued, queued.number ?? 1);
        // The turn before asked what this message, which came meanwhile, answers.
        if (live.state === "TASK_STATE_INPUT_REQUIRED") live.pushStatus("TASK_STATE_WORKING");
        const end = await this.#beginTurn(running, live.served.agent, queued).drive();
        running.stopTimeout?.();
        running.run = undefined;
        live.endTurn();
        const reply = end.kind === "message" ? end.message : undefined;
        if (reply !== undefined) await this.#answer(live, reply);
      }
      // It would have completed with a turn before if no message had waited, which then turned out to be a repeat.
      if (!live.closed && STATE_CLASS[live.state] === "active") live.end("TASK_STATE_COMPLETED");
    } catch (error) {
      if (live.lostError === undefined && !live.closed) {
        this.#context.log.error({ err: error, task: live.id }, "A run ended in an error of the engine.");
        live.lose(new ProtocolError("INTERNAL_ERROR", "The run broke off.", { cause: error }));
      }
    } finally {
      running.cancelGraceTimer?.();
      running.leaveQueue();
      if (this.#running.get(live.id) === running) this.#running.delete(live.id);
    }
    live.rest();
  }

  /** One message, one turn. */
  #beginTurn(running: ActiveRun, agent: Agent, queued: QueuedTurn): TurnRun {
    const { live } = running;
    const limit = findLimit(agent, queued, this.#context.clock);
    const turn = new RunningTurn(this.#context, this.committer, live, queued, limit?.at);
    const run = new TurnRun(this.#context, live, agent, turn);
    running.run = run;
    if (live.state === "TASK_STATE_SUBMITTED") this.committer.beforeCommit(() => run.showIfSilent());
    running.stopTimeout =
      limit === undefined
        ? undefined
        : this.#context.clock.after(limit.inMs, () => {
            run.cancel(new ProtocolError("RESOURCE_EXHAUSTED", "The turn took too long."));
            live.end("TASK_STATE_FAILED", textDraft(limit.text));
            running.leaveQueue();
          });
    return run;
  }

  /** The agent answered with a plain message: the task that was kept for it is taken back, unless a caller knows it. */
  async #answer(live: LiveTask, reply: Message): Promise<void> {
    if (!live.isUnwritten) await live.whenFlushed();
    const { taskId: _, ...message } = reply;
    if (!live.visible && (live.isUnwritten || (await this.#takeBack(live, message)))) {
      this.tasks.drop(live);
      live.withdraw(message);
      this.#context.store.wakeups.publish({ log: [live.id] });
      return;
    }
    if (live.closed) return;
    // A message that was accepted meanwhile must still be answered.
    live.pushStatus(live.openTurns > 0 ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED", reply);
    live.decide();
  }

  /** False if the task was lost, or has to stay because another node accepted a message for it. */
  async #takeBack(live: LiveTask, reply: Message): Promise<boolean> {
    const { id, fence } = live;
    live.beginWithdrawal();
    try {
      const expect = live.fold.number;
      const result = await this.committer.write({ kind: "discard", id, fence, expect, reply });
      // Gone already: an earlier try did it, and only its answer was lost.
      if (result.ok || result.refusal === "missing") return true;
      live.cancelWithdrawal();
      if (result.refusal === "position") await this.tasks.catchUp(live);
      else this.tasks.lose(live, result.refusal);
    } catch (error) {
      live.lose(error instanceof Error ? error : new Error(String(error)));
    }
    return false;
  }
}

/** When a turn is over in any case, and what its task then fails with. */
interface TimeLimit {
  readonly at: number;
  readonly inMs: number;
  readonly text: string;
}

/** That of the agent or that of the caller, whichever comes first. */
function findLimit({ timeoutMs }: Agent, { deadline }: QueuedTurn, clock: Pick<Clock, "now">): TimeLimit | undefined {
  if (timeoutMs === undefined && deadline === undefined) return undefined;
  const now = clock.now();
  const left = deadline === undefined ? Number.POSITIVE_INFINITY : deadline - now;
  if (timeoutMs === undefined || left < timeoutMs) {
    return { at: now + left, inMs: left, text: statusText("deadlinePassed") };
  }
  return { at: now + timeoutMs, inMs: timeoutMs, text: statusText("agentTimedOut", timeoutMs / 1000) };
}

function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
}
