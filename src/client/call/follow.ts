/** Follows a task over as many connections as necessary. */

import type { Backoff } from "../../model/backoff.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../model/task.ts";
import { ConnectionError } from "../errors.ts";
import type { CallSettings, Failure, StreamOperation } from "../transport/transport.ts";
import { type Endpoints, Failover } from "./failover.ts";
import {
  type CallSetup,
  callWithRetries,
  createRetryBackoff,
  isTransient,
  pollTask,
  retryDelay,
  sleepBeforeCall,
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
  const { replay, settings, setup, start } = options;
  const { endpoints, notify, requestRetry, streamRetry } = setup;
  const cursor = new Cursor(replay, start.kind === "subscribe" ? start.after : undefined);
  const watch = new TaskProgress();
  const route = new Failover(endpoints);
  // Until the first frame it is a request like any other, and a user may be waiting for the response.
  let retry = requestRetry;
  let backoff: Backoff | undefined;
  let operation: StreamOperation = start;

  for (;;) {
    if (operation.kind === "subscribe" && !endpoints.can.operations.subscribe) {
      yield* pollInstead(options, operation.id);
      return;
    }
    cursor.startConnection();
    const resumed = operation !== start;
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
    if (failure !== undefined && !failure.transient) {
      // The peer supports tasks, but not subscribing to them.
      if (operation.kind === "subscribe" && failure.error.code === "METHOD_NOT_FOUND" && canPoll(endpoints)) {
        yield* pollInstead(options, operation.id);
        return;
      }
      if (!resumed || failure.error.code !== "UNSUPPORTED_OPERATION") throw failure.error;
      // The task ended while disconnected, and this peer does not replay the end of the stream.
      const task = await callWithRetries(setup, { kind: "get", id: watch.taskId as string }, settings);
      watch.setState(task.status.state);
      if (watch.ended || isInterrupted(task.status.state)) {
        yield [{ event: { task }, json: JSON.stringify({ task }) }];
        return;
      }
    }
    const broken = failure?.error ?? closedEarlyError(watch);
    operation = nextOperation(start, watch, cursor, settings, broken);
    if (operation.kind === "subscribe" && !canResume(endpoints)) throw notResumableError(broken);
    backoff ??= createRetryBackoff(retry.attempts, retry);
    let wait = backoff.next();
    if (wait === undefined) {
      if (!route.giveUpLast(broken)) throw retriesExhaustedError(broken, watch, cursor, streamRetry.attempts);
      retry = streamRetry;
      backoff = undefined;
      wait = 0;
    }
    notify({ kind: "reconnect", message: `${broken.message} Resuming.` });
    await sleepBeforeCall(setup, retryDelay(wait, broken), settings.signal);
  }
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

function pollInstead({ settings, setup, start }: FollowOptions, id: string, message = CANNOT_STREAM) {
  setup.notify({ kind: "fallback", message });
  return pollTask({ setup, settings, id, observes: start.kind === "subscribe" });
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
