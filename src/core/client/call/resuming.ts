/** What may follow a connection that has ended or could not be opened: pure rules of `RemoteTask`. */

import { ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { ConnectionError, failedBeforeSending } from "../errors.ts";
import type { CallSettings, Failure, StreamOperation } from "../transport/transport.ts";
import type { TaskProgress } from "./cursor.ts";
import type { Endpoints } from "./failover.ts";
import { isTransient } from "./retry.ts";

export function canPoll({ can }: Endpoints): boolean {
  return can.operations.get;
}

export function canResume({ can: { operations } }: Endpoints): boolean {
  return operations.subscribe || operations.get;
}

/** The connection could not be established, and may be later. */
export function isNeverSent(error: unknown): boolean {
  return ConnectionError.is(error) && !error.permanent && error.code === "unreachable" && failedBeforeSending(error);
}

export function failureOf(error: unknown): Failure {
  if (!ProtocolError.is(error) && !ConnectionError.is(error)) throw error;
  return { ok: false, error, transient: isTransient(error), reach: "unknown" };
}

/** The sender of a message has to act when the task waits for someone; an observer continues to observe. */
export function isOverFor(start: StreamOperation, { status: { state } }: Task): boolean {
  return isTerminal(state) || (isInterrupted(state) && start.kind === "stream");
}

export function isEnd(progress: TaskProgress, start: StreamOperation, failure: Failure | undefined): boolean {
  // A broken connection after the end loses nothing; an error from the peer is still reported.
  if (progress.ended) return failure === undefined || failure.transient;
  if (progress.state === undefined || !isInterrupted(progress.state)) return false;
  if (failure === undefined) return true;
  // The sender of the message has to reply now; an observer continues to observe.
  return start.kind === "stream" && progress.state === "TASK_STATE_INPUT_REQUIRED" && failure.transient;
}

/**
 * Whether the first frame after a break follows the last one before it. Peers that send neither numbers nor a snapshot
 * only send what happens from now on; what happened during the break can only be read from the task.
 */
export function continuesAt(first: StreamFrame, operation: StreamOperation, replay: boolean): boolean {
  if (operation.kind !== "subscribe" || operation.after === undefined || first.number === undefined) return false;
  return replay || first.number === operation.after + 1;
}

/** Before the task id is known, only the send itself can be repeated, if the caller made that safe. */
export function nextOperation(
  start: StreamOperation,
  taskId: string | undefined,
  after: number | undefined,
  settings: CallSettings,
  broken: Failure["error"],
): StreamOperation {
  if (taskId !== undefined) return { kind: "subscribe", id: taskId, ...(after === undefined ? {} : { after }) };
  if (start.kind === "subscribe" || settings.idempotencyKey !== undefined) return start;
  if (ProtocolError.is(broken) || broken.code !== "broken-stream") throw broken;
  throw new ConnectionError(
    "broken-stream",
    `${broken.message} No task id was received yet, so it is unknown whether the agent received the message. Look for it with list(), or send with an idempotencyKey to have it repeated safely.`,
    { cause: broken },
  );
}

export function withReplay(settings: CallSettings, operation: StreamOperation, replay: boolean): CallSettings {
  if (!replay || operation.kind !== "subscribe" || operation.after === undefined) return settings;
  return { ...settings, extensions: [...settings.extensions, EXTENSIONS.replay] };
}

export function closedEarlyError({ taskId }: TaskProgress): ConnectionError {
  const what = taskId === undefined ? "before it sent anything" : "although the task is still running";
  return new ConnectionError("broken-stream", `The agent closed the stream ${what}.`);
}

/** Without the task id, because the caller could not use it. */
export function notResumableError(broken: Failure["error"]): ConnectionError {
  return new ConnectionError(
    "broken-stream",
    `The answer is incomplete, and this agent's dialect cannot resume it. ${broken.message}`,
    { cause: broken },
  );
}

export function retriesExhaustedError(
  broken: Failure["error"],
  taskId: string | undefined,
  after: number | undefined,
  attempts: number,
): ProtocolError | ConnectionError {
  if (taskId === undefined) return broken;
  return new ConnectionError(
    "broken-stream",
    `The stream of task ${taskId} broke and could not be resumed in ${attempts} tries. ${broken.message} The task may still be running at the agent: subscribe to it again later, or get it.`,
    { cause: broken, taskId, ...(after === undefined ? {} : { after }) },
  );
}
