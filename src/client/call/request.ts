/** Repeats requests if that is safe, and fails over to another interface. */

import type { OutcomeOf, StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { toConnectionError } from "../errors.ts";
import type { Notice, RetryOptions } from "../options.ts";
import type { CallSettings, UnaryOperation } from "../transport/transport.ts";
import { type Endpoints, Failover } from "./failover.ts";
import { createRetryBackoff, isRepeatable, maxAttempts, retryDelay, sleep } from "./retry.ts";

/** What the calls to one agent have in common. */
export interface CallSetup {
  readonly endpoints: Endpoints;
  readonly requestRetry: RetryOptions;
  readonly streamRetry: RetryOptions;
  /** Polling interval for a task that cannot be subscribed to; grows while nothing changes. */
  readonly polling: { readonly baseMs: number; readonly capMs: number };
  readonly notify: (notice: Notice) => void;
}

/** Sends a request, with retries if that is safe. `onRepeat` is called before each retry. */
export async function callWithRetries<O extends UnaryOperation>(
  setup: CallSetup,
  operation: O,
  settings: CallSettings,
  onRepeat?: () => void,
): Promise<OutcomeOf<O>> {
  const { endpoints, notify, requestRetry } = setup;
  const newBackoff = () =>
    createRetryBackoff(maxAttempts(operation.kind, requestRetry, settings.idempotencyKey), requestRetry);
  const route = new Failover(endpoints);
  let backoff = newBackoff();
  for (;;) {
    const made = await route.run(operation, settings.signal, (transport) => transport.attempt(operation, settings));
    if (made.ok) return made.value;
    let wait = made.transient ? backoff.next() : undefined;
    if (wait === undefined) {
      if (!isRepeatable(operation.kind, settings.idempotencyKey) || !route.giveUpLast(made.error)) throw made.error;
      backoff = newBackoff();
      wait = 0;
    }
    onRepeat?.();
    notify({ kind: "reconnect", message: `${made.error.message} Trying again.` });
    await sleepBeforeCall(setup, retryDelay(wait, made.error), settings.signal);
  }
}

/** Sleeps; an abort is reported as an abort of the call that would have followed. */
export async function sleepBeforeCall(setup: CallSetup, milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, signal);
  } catch (error) {
    throw toConnectionError(error, { method: "The wait to reach", url: setup.endpoints.interface.url });
  }
}

interface PollOptions {
  readonly setup: CallSetup;
  readonly settings: CallSettings;
  readonly id: string;
  /** Continue polling while the task waits for input. */
  readonly observes: boolean;
  /** The task as last delivered. */
  readonly known?: Task;
}

const POLL_SLOWDOWN = 1.5;

/** Yields `{ task }` whenever it has changed, until it has ended. */
export async function* pollTask(options: PollOptions): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  const { id, known, observes, settings, setup } = options;
  const { baseMs, capMs } = setup.polling;
  let wait = baseMs;
  let last = known === undefined ? undefined : JSON.stringify(known);
  for (;;) {
    if (last !== undefined) await sleepBeforeCall(setup, wait, settings.signal);
    const task = await callWithRetries(setup, { kind: "get", id }, settings);
    const json = JSON.stringify(task);
    if (json === last) {
      wait = Math.min(capMs, wait * POLL_SLOWDOWN);
    } else {
      last = json;
      wait = baseMs;
      yield [{ event: { task }, json: `{"task":${json}}` }];
    }
    const { state } = task.status;
    if (isTerminal(state) || (isInterrupted(state) && !observes)) return;
  }
}
