/** Calls that are repeated if that is safe: which operations may be, after which failures, and after which delay. */

import { setTimeout } from "node:timers/promises";
import { Abort, type Signal, toAbortSignal } from "../../model/abort.ts";
import { type Backoff, createBackoff } from "../../model/backoff.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { OperationKind, OperationOf, OutcomeOf } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { CarrierError } from "../../wire/exchange.ts";
import { ConnectionError, toConnectionError } from "../errors.ts";
import type { Notice, RetryOptions } from "../options.ts";
import type { CallSettings, UnaryOperation } from "../transport/transport.ts";
import { type Endpoints, Failover } from "./failover.ts";

type Repeatable = "always" | "once" | "with-key" | "never";

/** A send may start work, so it is repeated only if the caller made that safe. The others are idempotent. */
const REPEATABLE = {
  send: "with-key",
  stream: "with-key",
  get: "always",
  list: "always",
  cancel: "once",
  subscribe: "always",
  "push-create": "never",
  "push-get": "always",
  "push-list": "always",
  "push-delete": "always",
  "extended-card": "always",
} as const satisfies Record<OperationKind, Repeatable>;

/** Maximum number of attempts for an operation, including the first. */
function maxAttempts(kind: OperationKind, retry: RetryOptions, idempotencyKey: string | undefined): number {
  switch (REPEATABLE[kind]) {
    case "always":
      return retry.attempts;
    case "once":
      return Math.min(2, retry.attempts);
    case "with-key":
      return idempotencyKey === undefined ? 1 : retry.attempts;
    case "never":
      return 1;
  }
}

/** Whether a second attempt is harmless even if the agent received the first. */
function isRepeatable(kind: OperationKind, idempotencyKey: string | undefined): boolean {
  const repeatable = REPEATABLE[kind];
  return repeatable === "always" || (repeatable === "with-key" && idempotencyKey !== undefined);
}

/** Whether a retry may succeed. */
export function isTransient(error: unknown): boolean {
  if (ConnectionError.is(error)) {
    return (
      !error.permanent && (error.code === "unreachable" || error.code === "timeout" || error.code === "broken-stream")
    );
  }
  return ProtocolError.is(error) && (error.code === "UNAVAILABLE" || error.code === "RESOURCE_EXHAUSTED");
}

const MAX_RETRY_AFTER_MS = 30_000;

/** The peer's `retryAfter`, capped, or our own backoff if that is longer. */
export function retryDelay(backoffMs: number, error: unknown): number {
  const requested = ProtocolError.is(error) ? (error.retryAfter ?? 0) * 1000 : 0;
  return Math.max(backoffMs, Math.min(requested, MAX_RETRY_AFTER_MS));
}

/** `tries` includes the first one, which has no delay. */
export function createRetryBackoff(tries: number, retry: RetryOptions): Backoff {
  return createBackoff(
    {
      baseMs: retry.baseMs,
      capMs: retry.capMs,
      maxTries: Math.max(0, tries - 1),
      resetAfterMs: Number.POSITIVE_INFINITY,
    },
    { random: Math.random, now: () => performance.now() },
  );
}

export interface JoinedSignal {
  readonly signal: Signal;
  abort(): void;
  /** Removes the listeners from the joined signals, which may live much longer than one call. */
  release(): void;
}

/** `controller` is the one that is aborted with the signals, if the caller has one already. */
export function joinSignals(signals: readonly (Signal | undefined)[], controller = new Abort()): JoinedSignal {
  const onAbort = (): void => abort();
  const release = (): void => {
    for (const signal of signals) signal?.removeEventListener("abort", onAbort);
  };
  const abort = (): void => {
    release();
    controller.abort();
  };
  if (signals.some((signal) => signal?.aborted)) abort();
  else for (const signal of signals) signal?.addEventListener("abort", onAbort, { once: true });
  return { signal: controller, abort, release };
}

/** Rejects with an `aborted` CarrierError, as a call would. */
export async function sleep(milliseconds: number, signal?: Signal): Promise<void> {
  await setTimeout(milliseconds, undefined, signal && { signal: toAbortSignal(signal) }).catch((cause: unknown) => {
    throw new CarrierError("aborted", "The wait was aborted", { cause });
  });
}

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
export async function sleepBeforeCall(setup: CallSetup, milliseconds: number, signal: Signal): Promise<void> {
  try {
    await sleep(milliseconds, signal);
  } catch (error) {
    throw toConnectionError(error, { method: "The wait to reach", url: setup.endpoints.interface.url });
  }
}

/** Like `callWithRetries`, for a cancellation. */
export async function cancelTask(
  setup: CallSetup,
  operation: OperationOf<"cancel">,
  settings: CallSettings,
): Promise<Task> {
  let isRepeated = false;
  const onRepeat = (): void => {
    isRepeated = true;
  };
  try {
    return await callWithRetries(setup, operation, settings, onRepeat);
  } catch (error) {
    // The first attempt may have succeeded, with only its response lost.
    if (!isRepeated || !ProtocolError.is(error) || error.code !== "TASK_NOT_CANCELABLE") throw error;
    const task = await callWithRetries(setup, { kind: "get", id: operation.id }, settings);
    if (task.status.state !== "TASK_STATE_CANCELED") throw error;
    return task;
  }
}
