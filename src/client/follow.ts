/** Following a task over as many connections as it takes. */
import { ProtocolError } from "../model/errors.ts";
import type { StreamEvent } from "../model/event.ts";
import { EXTENSIONS } from "../model/extensions.ts";
import { isInterrupted, isTerminal, type TaskState } from "../model/state.ts";
import type { Backoff } from "../wire/reconnect.ts";
import { type Caller, pause } from "./caller.ts";
import { Cursor } from "./cursor.ts";
import { ConnectionError } from "./errors.ts";
import type { FrameReader } from "./frame-reader.ts";
import type { ClientEvent } from "./options.ts";
import { pollTask } from "./poll.ts";
import { createRetryBackoff, isTransient, waitFor } from "./retry.ts";
import type { CallSettings, Failure, StreamOperation } from "./transport.ts";

/** A peer may still send a last snapshot after the end of a task; one that never closes is not waited for. */
const LINGER_MS = 2_000;

export interface FollowOptions {
  readonly caller: Caller;
  readonly start: StreamOperation;
  readonly settings: CallSettings;
  /** The card declares that ids are numbers of the log and that resuming can leave out the snapshot. */
  readonly replay: boolean;
}

/** What has been seen of the task, as far as it decides what to do when a connection ends. */
class Watch {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** Nothing can follow: the task ended, or the agent answered with a message. */
  over = false;

  see(event: StreamEvent): void {
    if ("message" in event) {
      if (this.taskId === undefined) this.over = true;
    } else if ("task" in event) {
      this.taskId = event.task.id;
      this.enter(event.task.status.state);
    } else if ("statusUpdate" in event) {
      this.taskId = event.statusUpdate.taskId;
      this.enter(event.statusUpdate.status.state);
    } else {
      this.taskId = event.artifactUpdate.taskId;
    }
  }

  enter(state: TaskState): void {
    this.state = state;
    if (isTerminal(state)) this.over = true;
  }
}

export async function* follow(options: FollowOptions): AsyncGenerator<readonly ClientEvent[], void, undefined> {
  const { caller, replay, settings, start } = options;
  const { notify, requestRetry, streamRetry } = caller.setup;
  const cursor = new Cursor(replay, start.kind === "subscribe" ? start.after : undefined);
  const watch = new Watch();
  const newBackoff = (): Backoff => createRetryBackoff(streamRetry.attempts, streamRetry);
  const route = caller.startRoute();
  // Until something has come it is a request like any other, which someone may be waiting for.
  let backoff = createRetryBackoff(requestRetry.attempts, requestRetry);
  let operation: StreamOperation = start;

  for (;;) {
    if (operation.kind === "subscribe" && !caller.can.operations.subscribe) {
      yield* pollInstead(options, operation.id);
      return;
    }
    cursor.startConnection();
    const resumed = operation !== start;
    const opened = await caller.open(operation, withReplay(settings, operation, replay), route);
    let failure: Failure | undefined;
    if (opened.ok) {
      let read = 0;
      try {
        for await (const events of readEvents(opened.value, cursor, watch)) {
          // A snapshot alone is no progress: a peer that closes after each would be asked forever.
          const [first] = events;
          const isSnapshot = resumed && read === 0 && first !== undefined && "task" in first.event;
          if (events.length > (isSnapshot ? 1 : 0)) backoff = newBackoff();
          read += events.length;
          yield events;
        }
      } catch (error) {
        failure = failureOf(error);
      }
    } else {
      failure = opened;
    }

    if (isEnd(watch, start, failure)) return;
    if (failure !== undefined && !failure.transient) {
      if (resumed && isUnknown(failure.error)) {
        yield* pollInstead(options, watch.taskId as string);
        return;
      }
      if (!resumed || !isUnsupported(failure.error)) throw failure.error;
      // The task ended while nobody listened, and this peer does not tell the end of its story again.
      const task = await caller.ask({ kind: "get", id: watch.taskId as string }, settings);
      watch.enter(task.status.state);
      if (watch.over || isInterrupted(task.status.state)) {
        yield [{ event: { task } }];
        return;
      }
    }
    const broken = failure?.error ?? closedEarly(watch);
    operation = nextOperation(start, watch, cursor, settings, broken);
    if (operation.kind === "subscribe" && !canTakeUp(caller)) throw brokenOff(broken);
    let wait = backoff.next();
    if (wait === undefined) {
      if (!route.leave(broken)) throw givenUp(broken, watch, cursor, streamRetry.attempts);
      backoff = newBackoff();
      wait = 0;
    }
    notify({ kind: "reconnect", message: `${broken.message} Resuming.` });
    await pause(waitFor(wait, broken), settings.signal, caller.interface.url);
  }
}

function pollInstead({ caller, settings, start }: FollowOptions, id: string) {
  caller.setup.notify({
    kind: "fallback",
    message: "The task cannot be followed by this interface; it is asked for from time to time.",
  });
  return pollTask({ caller, settings, id, observes: start.kind === "subscribe" });
}

/** Events not seen before; empty batches are left out. */
async function* readEvents(
  reader: FrameReader,
  cursor: Cursor,
  watch: Watch,
): AsyncGenerator<readonly ClientEvent[], void, undefined> {
  try {
    for await (const frames of reader.frames) {
      const events: ClientEvent[] = [];
      for (const frame of frames) {
        const event = cursor.accept(frame);
        if (event === undefined) continue;
        watch.see(event.event);
        events.push(event);
      }
      if (watch.over) reader.closeWithin(LINGER_MS);
      if (events.length > 0) yield events;
    }
  } finally {
    reader.cancel();
  }
}

function failureOf(error: unknown): Failure {
  if (!ProtocolError.is(error) && !ConnectionError.is(error)) throw error;
  return { ok: false, error, transient: isTransient(error), reach: "unknown" };
}

function isEnd(watch: Watch, start: StreamOperation, failure: Failure | undefined): boolean {
  // A break after the end takes nothing away; what the peer says is heard in any case.
  if (watch.over) return failure === undefined || failure.transient;
  if (watch.state === undefined || !isInterrupted(watch.state)) return false;
  if (failure === undefined) return true;
  // Whoever sent the message has to answer now; a mere observer goes on observing.
  return start.kind === "stream" && watch.state === "TASK_STATE_INPUT_REQUIRED" && failure.transient;
}

function isUnsupported(error: Failure["error"]): boolean {
  return ProtocolError.is(error) && error.code === "UNSUPPORTED_OPERATION";
}

/** The peer streams, but knows no way to take a stream up again. */
function isUnknown(error: Failure["error"]): boolean {
  return ProtocolError.is(error) && error.code === "METHOD_NOT_FOUND";
}

/** Before a task is known there is only the send itself, which is repeated if the caller made that safe. */
function nextOperation(
  start: StreamOperation,
  watch: Watch,
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
    `${broken.message} No task had been named yet, so it is unknown whether the agent took the message. Look for it with list(), or send with an idempotencyKey to have it repeated safely.`,
    { cause: broken },
  );
}

function withReplay(settings: CallSettings, operation: StreamOperation, replay: boolean): CallSettings {
  if (!replay || operation.kind !== "subscribe" || operation.after === undefined) return settings;
  return { ...settings, extensions: [...settings.extensions, EXTENSIONS.replay] };
}

function closedEarly(watch: Watch): ConnectionError {
  const what = watch.taskId === undefined ? "before it said anything" : "although the task goes on";
  return new ConnectionError("broken-stream", `The agent closed the stream ${what}.`);
}

function canTakeUp({ can: { operations } }: Caller): boolean {
  return operations.subscribe || operations.get;
}

/** Without the task's id: there is nothing that could be done with it. */
function brokenOff(broken: Failure["error"]): ConnectionError {
  return new ConnectionError(
    "broken-stream",
    `The answer broke off before its end, and this agent's dialect has no way to take it up again. ${broken.message}`,
    { cause: broken },
  );
}

function givenUp(
  broken: Failure["error"],
  watch: Watch,
  cursor: Cursor,
  attempts: number,
): ProtocolError | ConnectionError {
  const { taskId } = watch;
  if (taskId === undefined) return broken;
  const after = cursor.last;
  return new ConnectionError(
    "broken-stream",
    `The stream of task ${taskId} broke and could not be resumed in ${attempts} tries. ${broken.message} The task may go on at the agent: subscribe to it again later, or get it.`,
    { cause: broken, taskId, ...(after === undefined ? {} : { after }) },
  );
}
