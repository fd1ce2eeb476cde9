/** Follows a task over as many connections as necessary. */

import type { Backoff } from "../../model/backoff.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task, type TaskState } from "../../model/task.ts";
import { ConnectionError } from "../errors.ts";
import type { Attempt, CallSettings, Failure, StreamOperation } from "../transport/transport.ts";
import { type Endpoints, Failover } from "./failover.ts";
import {
  type CallSetup,
  createRetryBackoff,
  isTransient,
  pollTask,
  retryDelay,
  sleepBeforeCall,
  taskFrame,
} from "./retry.ts";

/** Detects new frames. The number of an event is its position in the task's log, the same on every connection. */
export class Cursor {
  /** The peer declares that its ids are log positions. Others use timestamps or per-connection counters. */
  readonly #trusted: boolean;
  #last: number | undefined;
  #first: StreamFrame | undefined;
  #previous: number | undefined;
  #isFirstFrame = true;
  /** This connection restarted at the beginning of the log. */
  #replaying = false;
  #meaningless = false;

  constructor(trusted: boolean, after: number | undefined) {
    this.#trusted = trusted;
    this.#last = after;
  }

  /** The number to resume after; `undefined` if the peer does not number its events. */
  get last(): number | undefined {
    return this.#meaningless ? undefined : this.#last;
  }

  startConnection(): void {
    this.#isFirstFrame = true;
    this.#previous = undefined;
    this.#replaying = false;
  }

  /** The frame, with its number if that is a log position, or `undefined` if it was delivered before. */
  accept(frame: StreamFrame): StreamFrame | undefined {
    const isFirstFrame = this.#isFirstFrame;
    this.#isFirstFrame = false;
    const { number } = frame;
    if (number === undefined) return frame;
    if (this.#meaningless) return withoutNumber(frame);
    const repeatsId = number === this.#previous;
    this.#previous = number;
    // SSE: an id also applies to the following frames without an id of their own.
    if (repeatsId && !this.#trusted) return withoutNumber(frame);
    if (this.#last === undefined || number > this.#last) {
      this.#last = number;
      if (!this.#trusted) this.#first ??= frame;
      return frame;
    }
    if (this.#trusted || this.#replaying) return undefined;
    if (isFirstFrame) {
      // The snapshot of the task at the number we resumed from.
      if (number === this.#last) return undefined;
      this.#replaying = number === this.#first?.number && frame.json === this.#first.json;
      if (this.#replaying) return undefined;
    }
    // Log positions never decrease: these ids are something else, and dropping frames by them would lose events.
    this.#meaningless = true;
    return withoutNumber(frame);
  }
}

function withoutNumber({ event, json }: StreamFrame): StreamFrame {
  return { event, json };
}

/** A peer may still send a last snapshot after the end of a task; it has this long to close the stream. */
const LINGER_MS = 2_000;

interface FollowOptions {
  readonly setup: CallSetup;
  readonly start: StreamOperation;
  readonly settings: CallSettings;
  /** The card declares that ids are log positions and that resuming can omit the snapshot. */
  readonly replay: boolean;
  /** An earlier process followed the task: what it missed has to be read, if the peer does not send it. */
  readonly continues?: boolean | undefined;
}

/** The state of the task that decides what to do when a connection ends. */
class TaskProgress {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** No more events can follow: the task ended, or the agent replied with a message. */
  ended = false;

  apply(event: StreamEvent): void {
    if ("message" in event) {
      if (this.taskId === undefined) this.ended = true;
    } else if ("task" in event) {
      this.taskId = event.task.id || this.taskId;
      this.setState(event.task.status.state);
    } else if ("statusUpdate" in event) {
      this.taskId = event.statusUpdate.taskId || this.taskId;
      this.setState(event.statusUpdate.status.state);
    } else {
      this.taskId = event.artifactUpdate.taskId || this.taskId;
    }
  }

  setState(state: TaskState): void {
    this.state = state;
    if (isTerminal(state)) this.ended = true;
  }
}

export async function* followTask(options: FollowOptions): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  const { continues = false, replay, settings, setup, start } = options;
  const { endpoints, notify, requestRetry, streamRetry } = setup;
  const cursor = new Cursor(replay, start.kind === "subscribe" ? start.after : undefined);
  const watch = new TaskProgress();
  const route = new Failover(endpoints);
  // Until the first frame it is a request like any other, and a user may be waiting for the response.
  let retry = continues ? streamRetry : requestRetry;
  let lastRead: Attempt<Task> | undefined;
  let backoff: Backoff | undefined;
  let operation: StreamOperation = start;

  for (;;) {
    if (operation.kind === "subscribe" && !endpoints.can.operations.subscribe) {
      yield* pollInstead(options, operation.id);
      return;
    }
    cursor.startConnection();
    const resumed = continues || operation !== start;
    const opened = await route.open(operation, withReplay(settings, operation, replay));
    let failure: Failure | undefined;
    if (opened.ok) {
      let read = 0;
      try {
        for await (const received of opened.value.frames) {
          const frames = takeUnseen(received, cursor, watch);
          if (watch.ended) opened.value.closeWithin(LINGER_MS);
          if (frames.length === 0) continue;
          // A snapshot alone is not progress: a peer that closes after each would be called forever.
          const [first] = frames;
          const isSnapshot = resumed && read === 0 && first !== undefined && "task" in first.event;
          if (resumed && read === 0 && !isSnapshot && !continuesAt(first, operation, replay) && canPoll(endpoints)) {
            yield* pollInstead(options, watch.taskId as string, MISSED);
            return;
          }
          if (frames.length > (isSnapshot ? 1 : 0)) {
            retry = streamRetry;
            backoff = undefined;
          }
          read += frames.length;
          yield frames;
        }
      } catch (error) {
        failure = failureOf(error);
      } finally {
        opened.value.cancel();
      }
    } else {
      failure = opened;
    }

    if (isEnd(watch, start, failure)) return;
    const taskId = watch.taskId ?? (resumed && start.kind === "subscribe" ? start.id : undefined);
    const isFinal = failure !== undefined && !failure.transient;
    if (isFinal && operation.kind === "subscribe" && failure?.error.code === "METHOD_NOT_FOUND" && canPoll(endpoints)) {
      // The peer supports tasks, but not subscribing to them.
      yield* pollInstead(options, operation.id);
      return;
    }
    // Why a stream cannot be followed makes no difference: the task is read. One that only broke is resumed first, and one
    // that is replayed loses nothing by being resumed later.
    const isReplayed = replay && cursor.last !== undefined;
    const isRead = isFinal || (resumed && operation.kind === "subscribe" && !isReplayed);
    const read = isRead ? await readOnce(options, taskId) : undefined;
    if (read?.ok === true) {
      const isOver = isSettled(read.value, start);
      if (isOver || (isFinal && resumed)) yield [taskFrame(read.value)];
      if (isOver) return;
      if (isFinal && resumed) {
        yield* pollInstead(options, read.value.id, CANNOT_FOLLOW, read.value);
        return;
      }
    }
    // A task that is missing twice is lost; the first answer may come from a copy that is behind.
    if (isLost(read) && (isFinal || isLost(lastRead))) throw read.error;
    if (isFinal) throw failure?.error;
    lastRead = read;
    const broken = failure?.error ?? closedEarlyError(watch);
    operation = nextOperation(start, watch, cursor, settings, broken);
    if (operation.kind === "subscribe" && !canResume(endpoints)) throw notResumableError(broken);
    backoff ??= createRetryBackoff(retry.attempts, retry);
    let wait = backoff.next();
    if (wait === undefined) {
      if (!route.giveUpLast(broken)) {
        const last = read ?? (await readOnce(options, taskId));
        if (last?.ok !== true) throw retriesExhaustedError(broken, watch, cursor, streamRetry.attempts);
        yield* pollInstead(options, last.value.id, CANNOT_FOLLOW);
        return;
      }
      retry = streamRetry;
      backoff = undefined;
      wait = 0;
    }
    notify({ kind: "reconnect", message: `${broken.message} Resuming.` });
    await sleepBeforeCall(setup, retryDelay(wait, broken), settings.signal);
  }
}

/** Without retries: the task is read again after the next pause. Undefined if it cannot be read at all. */
async function readOnce(
  { settings, setup }: FollowOptions,
  id: string | undefined,
): Promise<Attempt<Task> | undefined> {
  if (id === undefined || !canPoll(setup.endpoints)) return undefined;
  const operation = { kind: "get", id } as const;
  return new Failover(setup.endpoints).run(operation, settings.signal, (transport) =>
    transport.attempt(operation, settings),
  );
}

/** The peer does not have the task. */
function isLost(read: Attempt<Task> | undefined): read is Failure {
  return read?.ok === false && read.error.code === "TASK_NOT_FOUND";
}

/** The sender of a message has to act when the task waits for someone; an observer continues to observe. */
function isSettled({ status: { state } }: Task, start: StreamOperation): boolean {
  return isTerminal(state) || (isInterrupted(state) && start.kind === "stream");
}

/**
 * Whether the first frame after a break follows the last one before it. Peers that send neither numbers nor a snapshot
 * only send what happens from now on; what happened during the break can only be read from the task.
 */
function continuesAt(first: StreamFrame | undefined, operation: StreamOperation, replay: boolean): boolean {
  if (operation.kind !== "subscribe" || operation.after === undefined || first?.number === undefined) return false;
  return replay || first.number === operation.after + 1;
}

function canPoll({ can }: Endpoints): boolean {
  return can.operations.get;
}

const CANNOT_STREAM = "This interface cannot stream the task; polling it instead.";
const MISSED = "The agent does not send what was missed during the break; polling the task instead.";
const CANNOT_FOLLOW = "The agent's stream cannot be followed any more; polling the task instead.";

/** `known`: the task as it was just read and delivered. */
function pollInstead(
  { continues, settings, setup, start }: FollowOptions,
  id: string,
  message = CANNOT_STREAM,
  known?: Task,
) {
  setup.notify({ kind: "fallback", message });
  return pollTask({ setup, settings, id, observes: start.kind === "subscribe", known, continues });
}

/** Frames not seen before. */
function takeUnseen(frames: readonly StreamFrame[], cursor: Cursor, watch: TaskProgress): readonly StreamFrame[] {
  const unseen: StreamFrame[] = [];
  for (const frame of frames) {
    const accepted = cursor.accept(frame);
    if (accepted === undefined) continue;
    watch.apply(accepted.event);
    unseen.push(accepted);
  }
  return unseen;
}

function failureOf(error: unknown): Failure {
  if (!ProtocolError.is(error) && !ConnectionError.is(error)) throw error;
  return { ok: false, error, transient: isTransient(error), reach: "unknown" };
}

function isEnd(watch: TaskProgress, start: StreamOperation, failure: Failure | undefined): boolean {
  // A broken connection after the end loses nothing; an error from the peer is still reported.
  if (watch.ended) return failure === undefined || failure.transient;
  if (watch.state === undefined || !isInterrupted(watch.state)) return false;
  if (failure === undefined) return true;
  // The sender of the message has to reply now; an observer continues to observe.
  return start.kind === "stream" && watch.state === "TASK_STATE_INPUT_REQUIRED" && failure.transient;
}

/** Before the task id is known, only the send itself can be repeated, if the caller made that safe. */
function nextOperation(
  start: StreamOperation,
  watch: TaskProgress,
  cursor: Cursor,
  settings: CallSettings,
  broken: Failure["error"],
): StreamOperation {
  if (watch.taskId !== undefined) {
    const after = cursor.last;
    return { kind: "subscribe", id: watch.taskId, ...(after === undefined ? {} : { after }) };
  }
  if (start.kind === "subscribe" || settings.idempotencyKey !== undefined) return start;
  if (ProtocolError.is(broken) || broken.code !== "broken-stream") throw broken;
  throw new ConnectionError(
    "broken-stream",
    `${broken.message} No task id was received yet, so it is unknown whether the agent received the message. Look for it with list(), or send with an idempotencyKey to have it repeated safely.`,
    { cause: broken },
  );
}

function withReplay(settings: CallSettings, operation: StreamOperation, replay: boolean): CallSettings {
  if (!replay || operation.kind !== "subscribe" || operation.after === undefined) return settings;
  return { ...settings, extensions: [...settings.extensions, EXTENSIONS.replay] };
}

function closedEarlyError(watch: TaskProgress): ConnectionError {
  const what = watch.taskId === undefined ? "before it sent anything" : "although the task is still running";
  return new ConnectionError("broken-stream", `The agent closed the stream ${what}.`);
}

function canResume({ can: { operations } }: Endpoints): boolean {
  return operations.subscribe || operations.get;
}

/** Without the task id, because the caller could not use it. */
function notResumableError(broken: Failure["error"]): ConnectionError {
  return new ConnectionError(
    "broken-stream",
    `The answer is incomplete, and this agent's dialect cannot resume it. ${broken.message}`,
    { cause: broken },
  );
}

function retriesExhaustedError(
  broken: Failure["error"],
  watch: TaskProgress,
  cursor: Cursor,
  attempts: number,
): ProtocolError | ConnectionError {
  const { taskId } = watch;
  if (taskId === undefined) return broken;
  const after = cursor.last;
  return new ConnectionError(
    "broken-stream",
    `The stream of task ${taskId} broke and could not be resumed in ${attempts} tries. ${broken.message} The task may still be running at the agent: subscribe to it again later, or get it.`,
    { cause: broken, taskId, ...(after === undefined ? {} : { after }) },
  );
}
