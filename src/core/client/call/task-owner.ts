/** How the cancellation of a run reaches the task of the agent that it called, also if it comes before the id of that task. */

import { isRunLost, type Signal } from "../../model/abort.ts";
import type { StreamOperation } from "../transport/transport.ts";
import { type CallSetup, cancelTask, type JoinedSignal } from "./retry.ts";

/** A run of this process, which the task is worked on for: no one else has an interest in it. */
export interface TaskOwner {
  /** Aborted when the run is cancelled or lost. A stream that is open then is left to its reader. */
  readonly signal: Signal | undefined;
  /** Called before each attempt to begin; throws if none is to be made now. */
  acquire(): void;
  countSuccess(): void;
  countFailure(error: unknown, isAborted: boolean): void;
  /** The error as the run is to see it. */
  explain(error: unknown): unknown;
}

interface Opening {
  readonly setup: CallSetup;
  readonly start: StreamOperation;
  readonly owner: TaskOwner | undefined;
}

/** For a send to return the id of its task after its owner was cancelled, and for the cancellation itself. */
const CANCEL_MS = 4_000;

/**
 * Until it is released, aborts what is being opened with its owner. A send is given time to return the id of its task:
 * without that the task could not be cancelled, and would be worked on for no one.
 */
export function abortWithOwner(stop: JoinedSignal, { owner, setup, start }: Opening): () => void {
  const signal = owner?.signal;
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    if (start.kind === "subscribe" || !isCancelled(signal)) {
      stop.abort();
      return;
    }
    timer = setTimeout(() => stop.abort(), CANCEL_MS);
    const { chosenId } = start;
    if (setup.endpoints.can.chosenIds && chosenId !== undefined) void cancelInTime(setup, chosenId).catch(() => {});
  };
  if (signal?.aborted === true) stop.abort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
}

/** As opposed to a run that continues elsewhere or later, and with it the task of the agent. */
export function isCancelled(signal: Signal | undefined): boolean {
  return signal?.aborted === true && !isRunLost(signal);
}

export async function cancelInTime(setup: CallSetup, id: string): Promise<void> {
  const signal = AbortSignal.timeout(CANCEL_MS);
  const settings = { signal, timeoutMs: undefined, idempotencyKey: undefined, extensions: [] };
  await cancelTask(setup, { kind: "cancel", id }, settings);
}
