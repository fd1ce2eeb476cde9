/** Which operations may be repeated, and after which failures. */

import { setTimeout } from "node:timers/promises";
import { type Backoff, createBackoff } from "../../model/backoff.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { OperationKind } from "../../model/operation.ts";
import { CarrierError } from "../../wire/exchange.ts";
import { ConnectionError } from "../errors.ts";
import type { RetryOptions } from "../options.ts";

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
export function maxAttempts(kind: OperationKind, retry: RetryOptions, idempotencyKey: string | undefined): number {
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
export function isRepeatable(kind: OperationKind, idempotencyKey: string | undefined): boolean {
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
  readonly signal: AbortSignal;
  abort(): void;
  /** Removes the listeners from the joined signals, which may live much longer than one call. */
  release(): void;
}

export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): JoinedSignal {
  const controller = new AbortController();
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
  return { signal: controller.signal, abort, release };
}

/** Rejects with an `aborted` CarrierError, as a call would. */
export async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(milliseconds, undefined, { signal }).catch((cause: unknown) => {
    throw new CarrierError("aborted", "The wait was aborted", { cause });
  });
}
