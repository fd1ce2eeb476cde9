/** How the cancellation of a run reaches the task of its upstream, also if it comes before the id of that task. */

import type { AgentCaller } from "../../core/client/call/agent-caller.ts";
import { TaskChanges } from "../../core/client/call/task-changes.ts";
import { Abort, isRunLost, type Signal } from "../../core/model/abort.ts";
import type { FrameStream, SendInput } from "../../core/model/operation.ts";
import type { Clock } from "../../core/model/ports.ts";

const CANCEL_MS = 4_000;

interface Opening {
  /** Absent if the task exists already. */
  readonly send: SendInput | undefined;
  readonly caller: AgentCaller;
  readonly clock: Clock;
}

/**
 * Aborts what is being opened; what is open is ended by its reader. A send is given time to return the id of its task:
 * without that the task could not be cancelled, and would be worked on for no one.
 */
export function delayAbort(signal: Signal | undefined, { send, caller, clock }: Opening) {
  const controller = new Abort();
  let stopTimer = () => {};
  const abort = () => controller.abort(signal?.reason);
  const onAbort = () => {
    if (send === undefined || !isCancelled(signal)) {
      abort();
      return;
    }
    stopTimer = clock.after(CANCEL_MS, abort);
    if (caller.can.chosenIds && send.chosenId !== undefined) void cancelTask(caller, send.chosenId).catch(() => {});
  };
  if (signal?.aborted === true) abort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const release = () => {
    stopTimer();
    signal?.removeEventListener("abort", onAbort);
  };
  return { controller, release };
}

/**
 * Cancels a task whose id has arrived only after its reader was cancelled. Its first frames are there already. Rejects if
 * the upstream refuses.
 */
export async function cancelOpened(stream: FrameStream, caller: AgentCaller): Promise<void> {
  const frames = stream[Symbol.asyncIterator]();
  const { value = [] } = await frames.next();
  const changes = new TaskChanges();
  changes.apply(value);
  try {
    if (changes.taskId !== undefined && !changes.isSettled) await cancelTask(caller, changes.taskId);
  } finally {
    await frames.return?.();
  }
}

export async function cancelTask(caller: AgentCaller, id: string): Promise<void> {
  await caller.dispatch({ kind: "cancel", id }, { signal: AbortSignal.timeout(CANCEL_MS) });
}

/** As opposed to a run that continues elsewhere or later, and with it the task of the upstream. */
export function isCancelled(signal: Signal | undefined): boolean {
  return signal?.aborted === true && !isRunLost(signal);
}

/** Rejects with the reason of the signal when it is aborted, whatever becomes of the work. */
export function abortable<T>(work: Promise<T>, signal: Signal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
