/** Repeats requests if that is safe, and fails over to another interface. */

import type { Abilities } from "../../dialects/contract.ts";
import type { OutcomeOf, StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { toConnectionError } from "../errors.ts";
import type { ChosenInterface, Notice, RetryOptions } from "../options.ts";
import type { Attempt, CallSettings, FrameReader, StreamOperation, UnaryOperation } from "../transport/transport.ts";
import { type Endpoints, Failover } from "./failover.ts";
import { createRetryBackoff, isRepeatable, maxAttempts, retryDelay, sleep } from "./retry.ts";

interface RetryingCallerOptions {
  readonly lines: Endpoints;
  readonly requestRetry: RetryOptions;
  readonly streamRetry: RetryOptions;
  /** Polling interval for a task that cannot be subscribed to; grows while nothing changes. */
  readonly polling: { readonly baseMs: number; readonly capMs: number };
  readonly notify: (notice: Notice) => void;
}

export interface RetryingCaller {
  readonly setup: RetryingCallerOptions;
  /** The interface in use; replaced by another when it fails. */
  readonly interface: ChosenInterface;
  /** What the interface in use can express. */
  readonly can: Abilities;
  /** Sends the request, with retries if that is safe. `onRepeat` is called before each retry. */
  call<O extends UnaryOperation>(operation: O, settings: CallSettings, onRepeat?: () => void): Promise<OutcomeOf<O>>;
  /** Failover state for the streams of one iteration. */
  startFailover(): Failover;
  /** Opens a stream, with one attempt on each remaining interface. */
  openStream(operation: StreamOperation, settings: CallSettings, route: Failover): Promise<Attempt<FrameReader>>;
}

export function createRetryingCaller(setup: RetryingCallerOptions): RetryingCaller {
  const { lines, notify, requestRetry } = setup;
  return {
    setup,
    get interface() {
      return lines.interface;
    },
    get can() {
      return lines.can;
    },
    async call(operation, settings, onRepeat) {
      const newBackoff = () => {
        return createRetryBackoff(maxAttempts(operation.kind, requestRetry, settings.idempotencyKey), requestRetry);
      };
      const route = new Failover(lines);
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
        await sleepBeforeCall(retryDelay(wait, made.error), settings.signal, lines.interface.url);
      }
    },
    startFailover: () => new Failover(lines),
    openStream: (operation, settings, route) =>
      route.open(operation, settings.signal, (transport) => transport.open(operation, settings)),
  };
}

/** Sleeps; an abort is reported as an abort of the call that would have followed. */
export async function sleepBeforeCall(milliseconds: number, signal: AbortSignal, url: string): Promise<void> {
  try {
    await sleep(milliseconds, signal);
  } catch (error) {
    throw toConnectionError(error, { method: "The wait to reach", url });
  }
}

/** Follows a task by polling. */

interface PollOptions {
  readonly caller: RetryingCaller;
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
  const { caller, id, known, observes, settings } = options;
  const { baseMs, capMs } = caller.setup.polling;
  let wait = baseMs;
  let last = known === undefined ? undefined : JSON.stringify(known);
  for (;;) {
    if (last !== undefined) await sleepBeforeCall(wait, settings.signal, caller.interface.url);
    const task = await caller.call({ kind: "get", id }, settings);
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
