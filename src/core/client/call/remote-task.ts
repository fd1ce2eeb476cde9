/** A task of a remote agent, followed over as many connections as necessary. */

import type { Signal } from "../../model/abort.ts";
import type { Backoff } from "../../model/backoff.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { OperationOf, StreamFrame } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { Attempt, CallSettings, Failure, FrameReader, StreamOperation } from "../transport/transport.ts";
import { Cursor, TaskProgress } from "./cursor.ts";
import { Failover } from "./failover.ts";
import { sendAndPoll, TaskPoller, taskFrame } from "./polling.ts";
import {
  canPoll,
  canResume,
  closedEarlyError,
  continuesAt,
  failureOf,
  isEnd,
  isNeverSent,
  isOverFor,
  nextOperation,
  notResumableError,
  retriesExhaustedError,
  withReplay,
} from "./resuming.ts";
import {
  type CallSetup,
  createRetryBackoff,
  type JoinedSignal,
  joinSignals,
  retryDelay,
  sleepBeforeCall,
} from "./retry.ts";
import { TaskChanges } from "./task-changes.ts";
import { abortWithOwner, cancelInTime, isCancelled, type TaskOwner } from "./task-owner.ts";

interface RemoteTaskOptions {
  readonly setup: CallSetup;
  readonly start: StreamOperation;
  readonly settings: Omit<CallSettings, "signal">;
  /** Each of them ends the stream; the task continues. */
  readonly signals: readonly (Signal | undefined)[];
  /** The card declares that ids are log positions and that resuming can omit the snapshot. */
  readonly replay: boolean;
  /** False: the agent does not stream, so its task is polled. */
  readonly streams: boolean;
  /**
   * With an owner only what is new is delivered, a message that was never sent is sent again, and the task is cancelled
   * with its owner. A subscription continues what an earlier process followed, so the task is read to its end.
   */
  readonly owner: TaskOwner | undefined;
}

type Frames = readonly StreamFrame[];

const DONE: IteratorResult<Frames, undefined> = { done: true, value: undefined };

/** A peer may still send a last snapshot after the end of a task; it has this long to close the stream. */
const LINGER_MS = 2_000;

const CANNOT_STREAM = "This interface cannot stream the task; polling it instead.";
const MISSED = "The agent does not send what was missed during the break; polling the task instead.";
const CANNOT_FOLLOW = "The agent's stream cannot be followed any more; polling the task instead.";

/**
 * Whatever is done again for a task is decided here: sending, connecting, resuming after a break, polling in place of a
 * stream, and cancelling. Interfaces of one agent are the matter of `Failover`, single requests of `callWithRetries`.
 */
export class RemoteTask implements AsyncIterableIterator<Frames, undefined> {
  readonly #options: RemoteTaskOptions;
  readonly #settings: CallSettings;
  readonly #stop: JoinedSignal;
  readonly #cursor: Cursor;
  readonly #progress = new TaskProgress();
  readonly #route: Failover;
  readonly #changes: TaskChanges | undefined;
  /** An earlier process followed the task: what it missed has to be read, if the peer does not send it. */
  readonly #continues: boolean;
  /** For the next connection. */
  #operation: StreamOperation;
  /** The connection that is open … */
  #reader: FrameReader | undefined;
  /** … what was received over it so far … */
  #received = 0;
  /** … or what takes its place to the end of the task. */
  #poller: TaskPoller | undefined;
  #backoff: Backoff | undefined;
  /** Until the first frame it is a request like any other, and a user may be waiting for the response. */
  #isPatient: boolean;
  #wasLost = false;
  /** What is being read, or was and is not delivered yet. */
  #pending: Promise<Frames | undefined> | undefined;
  #isReading = false;
  #isOver = false;

  constructor(options: RemoteTaskOptions) {
    const { owner, replay, settings, setup, signals, start } = options;
    this.#options = options;
    this.#operation = start;
    this.#stop = joinSignals(signals);
    this.#settings = { ...settings, signal: this.#stop.signal };
    this.#cursor = new Cursor(replay, start.kind === "subscribe" ? start.after : undefined);
    this.#route = new Failover(setup.endpoints);
    this.#changes = owner && new TaskChanges();
    this.#continues = owner !== undefined && start.kind === "subscribe";
    this.#isPatient = this.#continues;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Resolves once the first frames have arrived, so that a rejected call rejects like one without a stream. */
  async open(): Promise<this> {
    const { owner } = this.#options;
    const release = abortWithOwner(this.#stop, this.#options);
    try {
      await this.#begin();
      if (isCancelled(owner?.signal)) {
        // The id has arrived only after the owner was cancelled.
        this.#end();
        const { isSettled, taskId } = this.#progress;
        if (taskId !== undefined && !isSettled) await cancelInTime(this.#options.setup, taskId);
      }
      return this;
    } catch (error) {
      this.#end();
      throw owner === undefined ? error : owner.explain(error);
    } finally {
      release();
    }
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    this.#isReading = true;
    try {
      for (;;) {
        this.#pending ??= this.#advance();
        const received = await this.#pending;
        this.#pending = undefined;
        if (received === undefined) break;
        const frames = this.#changes === undefined ? received : this.#changes.apply(received);
        if (frames.length > 0) return { done: false, value: frames };
      }
      this.#end();
      return DONE;
    } catch (error) {
      this.#end();
      throw await this.#explain(error);
    } finally {
      this.#isReading = false;
      this.#pending = undefined;
    }
  }

  /** Ends a pending read at once. */
  async return(): Promise<IteratorResult<Frames, undefined>> {
    const pending = this.#pending;
    if (this.#isReading) this.#stop.abort();
    await pending?.catch(() => {});
    this.#end();
    await this.#cancelUnwanted();
    return DONE;
  }

  /** Sends a message again that cannot have arrived. What is safe to repeat anyway, `#recover` repeats. */
  async #begin(): Promise<void> {
    const { owner, settings, setup, start } = this.#options;
    const isResent = owner !== undefined && start.kind === "stream" && settings.idempotencyKey === undefined;
    const backoff = createRetryBackoff(isResent ? setup.requestRetry.attempts : 1, setup.requestRetry);
    for (;;) {
      owner?.acquire();
      try {
        this.#pending = this.#advance();
        await this.#pending;
        owner?.countSuccess();
        return;
      } catch (error) {
        this.#pending = undefined;
        const isAborted = owner?.signal?.aborted === true;
        owner?.countFailure(error, isAborted);
        const pause = isNeverSent(error) && !isAborted ? backoff.next() : undefined;
        if (pause === undefined) throw error;
        await sleepBeforeCall(setup, pause, owner?.signal ?? this.#settings.signal);
      }
    }
  }

  /** What follows; undefined at the end. */
  async #advance(): Promise<Frames | undefined> {
    while (!this.#isOver) {
      const frames =
        this.#poller !== undefined
          ? await this.#look(this.#poller)
          : await (this.#reader === undefined ? this.#connect() : this.#read(this.#reader));
      if (frames !== undefined) return frames;
    }
    return undefined;
  }

  async #connect(): Promise<Frames | undefined> {
    const { replay, setup, streams } = this.#options;
    const { can } = setup.endpoints;
    const operation = this.#operation;
    if (operation.kind === "stream" && !streams) return this.#send(operation);
    const isPolled = this.#continues && !streams && can.operations.get;
    if (operation.kind === "subscribe" && (isPolled || !can.operations.subscribe)) {
      return this.#poll(operation.id, CANNOT_STREAM);
    }
    this.#cursor.startConnection();
    this.#received = 0;
    const opened = await this.#route.open(operation, withReplay(this.#settings, operation, replay));
    if (!opened.ok) return this.#recover(opened);
    this.#reader = opened.value;
    return undefined;
  }

  async #send(input: OperationOf<"stream">): Promise<Frames | undefined> {
    const { frame, poller } = await sendAndPoll(this.#options.setup, input, this.#settings);
    if (frame !== undefined) this.#progress.apply(frame.event);
    this.#poller = poller;
    this.#isOver = poller === undefined;
    return frame && [frame];
  }

  async #read(reader: FrameReader): Promise<Frames | undefined> {
    let failure: Failure | undefined;
    try {
      const step = await reader.frames.next();
      if (step.done !== true) return this.#take(step.value, reader);
    } catch (error) {
      failure = failureOf(error);
    }
    this.#close();
    return this.#recover(failure);
  }

  /** Those that were not delivered before. */
  #take(received: Frames, reader: FrameReader): Frames | undefined {
    const { replay, setup } = this.#options;
    const frames = received.flatMap((frame) => this.#cursor.accept(frame) ?? []);
    for (const { event } of frames) this.#progress.apply(event);
    if (this.#progress.ended) reader.closeWithin(LINGER_MS);
    const [first] = frames;
    if (first === undefined) return undefined;
    const isFirst = this.#isResumed && this.#received === 0;
    const isSnapshot = isFirst && "task" in first.event;
    if (isFirst && !isSnapshot && !continuesAt(first, this.#operation, replay) && canPoll(setup.endpoints)) {
      this.#close();
      return this.#poll(this.#progress.taskId as string, MISSED);
    }
    // A snapshot alone is not progress: a peer that closes after each would be called forever.
    if (frames.length > (isSnapshot ? 1 : 0)) {
      this.#isPatient = true;
      this.#backoff = undefined;
    }
    this.#received += frames.length;
    return frames;
  }

  get #isResumed(): boolean {
    return this.#continues || this.#operation !== this.#options.start;
  }

  /** Decides what follows a connection that has ended or could not be opened. Rejects if nothing can. */
  async #recover(failure: Failure | undefined): Promise<Frames | undefined> {
    const { replay, setup, start } = this.#options;
    const { endpoints } = setup;
    const progress = this.#progress;
    const operation = this.#operation;
    if (isEnd(progress, start, failure)) {
      this.#isOver = true;
      return undefined;
    }
    const isResumed = this.#isResumed;
    const taskId = progress.taskId ?? (isResumed && start.kind === "subscribe" ? start.id : undefined);
    const isFinal = failure !== undefined && !failure.transient;
    if (isFinal && operation.kind === "subscribe" && failure.error.code === "METHOD_NOT_FOUND" && canPoll(endpoints)) {
      // The peer supports tasks, but not subscribing to them.
      return this.#poll(operation.id, CANNOT_STREAM);
    }
    // Why a stream cannot be followed makes no difference: the task is read. One that only broke is resumed first, and one
    // that is replayed loses nothing by being resumed later.
    const isReplayed = replay && this.#cursor.last !== undefined;
    const isRead = isFinal || (isResumed && operation.kind === "subscribe" && !isReplayed);
    const read = isRead ? await this.#readOnce(taskId) : undefined;
    if (read?.ok === true && (isOverFor(start, read.value) || (isFinal && isResumed))) {
      this.#isOver = isOverFor(start, read.value);
      if (!this.#isOver) this.#poll(read.value.id, CANNOT_FOLLOW, read.value);
      return [taskFrame(read.value)];
    }
    // A task that is missing twice is lost; the first answer may come from a copy that is behind.
    const isLost = read?.ok === false && read.error.code === "TASK_NOT_FOUND";
    if (isLost && (isFinal || this.#wasLost)) throw read.error;
    if (isFinal) throw failure.error;
    this.#wasLost = isLost;
    const broken = failure?.error ?? closedEarlyError(progress);
    this.#operation = nextOperation(start, progress.taskId, this.#cursor.last, this.#settings, broken);
    if (this.#operation.kind === "subscribe" && !canResume(endpoints)) throw notResumableError(broken);
    return this.#pause(broken, read, taskId);
  }

  /** Before the next connection. If there is none, the task is polled as long as it can be read. */
  async #pause(
    broken: Failure["error"],
    read: Attempt<Task> | undefined,
    taskId: string | undefined,
  ): Promise<undefined> {
    const { notify, requestRetry, streamRetry } = this.#options.setup;
    const retry = this.#isPatient ? streamRetry : requestRetry;
    this.#backoff ??= createRetryBackoff(retry.attempts, retry);
    let wait = this.#backoff.next();
    if (wait === undefined) {
      if (!this.#route.giveUpLast(broken)) {
        const last = read ?? (await this.#readOnce(taskId));
        if (last?.ok !== true) {
          throw retriesExhaustedError(broken, this.#progress.taskId, this.#cursor.last, streamRetry.attempts);
        }
        return this.#poll(last.value.id, CANNOT_FOLLOW);
      }
      this.#isPatient = true;
      this.#backoff = undefined;
      wait = 0;
    }
    notify({ kind: "reconnect", message: `${broken.message} Resuming.` });
    await sleepBeforeCall(this.#options.setup, retryDelay(wait, broken), this.#settings.signal);
    return undefined;
  }

  /** Without retries: the task is read again after the next pause. Undefined if it cannot be read at all. */
  async #readOnce(id: string | undefined): Promise<Attempt<Task> | undefined> {
    const { endpoints } = this.#options.setup;
    if (id === undefined || !canPoll(endpoints)) return undefined;
    const operation = { kind: "get", id } as const;
    return new Failover(endpoints).run(operation, this.#settings.signal, (transport) =>
      transport.attempt(operation, this.#settings),
    );
  }

  /** From now on the task is polled. `known`: as it was just read and delivered. */
  #poll(id: string, message: string, known?: Task): undefined {
    const { setup, start } = this.#options;
    setup.notify({ kind: "fallback", message });
    const observes = start.kind === "subscribe";
    this.#poller = new TaskPoller({ setup, settings: this.#settings, id, observes, known, continues: this.#continues });
  }

  async #look(poller: TaskPoller): Promise<Frames | undefined> {
    const frame = await poller.look();
    this.#isOver = frame === undefined;
    if (frame === undefined) return undefined;
    this.#progress.apply(frame.event);
    return [frame];
  }

  /** An owner whose signal is aborted decides itself whether the task is cancelled. Any other refused the answer. */
  async #cancelUnwanted(): Promise<void> {
    const { owner, setup } = this.#options;
    const { isSettled = true, taskId } = this.#changes ?? {};
    if (taskId === undefined || isSettled || owner?.signal?.aborted === true) return;
    await cancelInTime(setup, taskId).catch(ignore);
  }

  async #explain(error: unknown): Promise<unknown> {
    const { owner } = this.#options;
    if (owner === undefined) return error;
    owner.countFailure(error, owner.signal?.aborted === true);
    if (ProtocolError.is(error)) await this.#cancelUnwanted();
    return owner.explain(error);
  }

  #close(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.cancel();
    reader?.frames.return?.().catch(ignore);
  }

  #end(): void {
    this.#isOver = true;
    this.#pending = undefined;
    this.#stop.release();
    this.#close();
  }
}

function ignore(): void {}
