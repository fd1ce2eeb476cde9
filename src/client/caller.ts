/** One interface of one agent: operations in, outcomes out. Owns the sockets; what to say is the dialect's business. */

import type { ExchangeCalling } from "../dialects/contract.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import type { Operation, OutcomeOf, StreamFrame } from "../model/operation.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../wire/exchange.ts";
import type { ConnectionError } from "./errors.ts";
import { connectionError } from "./failures.ts";
import { type FrameReader, readFrames } from "./frame-reader.ts";
import type { ChosenInterface, Notice, RetryOptions } from "./options.ts";
import { createRetryBackoff, isTransient, triesFor, waitFor } from "./retry.ts";
import { sleep } from "./signals.ts";
import type { Tracer } from "./trace.ts";

export interface CallerSetup {
  readonly calling: ExchangeCalling;
  readonly interface: ChosenInterface;
  readonly headers: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  readonly exchange: Exchanger;
  readonly tracer: Tracer | undefined;
  readonly timeoutMs: number;
  readonly streamSilenceMs: number;
  readonly requestRetry: RetryOptions;
  readonly streamRetry: RetryOptions;
  readonly notify: (notice: Notice) => void;
}

/** The circumstances of one call. */
export interface CallSettings {
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly extensions: readonly string[];
}

export interface Failure {
  readonly ok: false;
  readonly error: ProtocolError | ConnectionError;
  /** Asking again may help. */
  readonly transient: boolean;
}

export type Attempt<T> = { readonly ok: true; readonly value: T } | Failure;

type StreamOperation = Extract<Operation, { kind: "stream" | "subscribe" }>;
export type WholeOperation = Exclude<Operation, StreamOperation>;

export interface Caller {
  readonly setup: CallerSetup;
  /** Asks, and asks again where that is safe. `onRepeat` hears of each failure that is not the last word. */
  ask<O extends WholeOperation>(operation: O, settings: CallSettings, onRepeat?: () => void): Promise<OutcomeOf<O>>;
  /** Opens a stream; one try. */
  open(operation: StreamOperation, settings: CallSettings): Promise<Attempt<FrameReader>>;
}

export function createCaller(setup: CallerSetup): Caller {
  const { calling, exchange, notify, tracer } = setup;
  /** Set once the peer turned out to know streams only in their other form. */
  let prefersAlternative = false;

  function encode(operation: Operation, settings: CallSettings): ExchangeCall {
    const { tenant, url } = setup.interface;
    const key = operation.kind === "send" || operation.kind === "stream" ? settings.idempotencyKey : undefined;
    const { losses, value } = calling.encode(operation, {
      url,
      tenant,
      headers: setup.headers,
      extensions: [...new Set([...setup.extensions, ...settings.extensions])],
      ...(key === undefined ? {} : { idempotencyKey: key }),
    });
    report(losses);
    return { ...value, signal: settings.signal, timeoutMs: settings.timeoutMs ?? setup.timeoutMs };
  }

  function report(losses: readonly Loss[]): void {
    for (const loss of losses) notify({ kind: "loss", message: `${loss.path} was ${loss.kind}: ${loss.reason}` });
  }

  async function attempt<O extends WholeOperation>(
    operation: O,
    settings: CallSettings,
  ): Promise<Attempt<OutcomeOf<O>>> {
    const call = encode(operation, settings);
    let answer: ExchangeAnswer | undefined;
    try {
      tracer?.request(call);
      answer = await exchange(call);
      const whole = await readWhole(call, answer);
      const { losses, value } = calling.decode(operation.kind, whole);
      report(losses);
      return { ok: true, value: value as OutcomeOf<O> };
    } catch (error) {
      return failure(error, call, answer);
    }
  }

  async function readWhole(call: ExchangeCall, answer: ExchangeAnswer) {
    const text = await answer.text();
    tracer?.response(call, answer, text);
    return { status: answer.status, contentType: answer.headers.get("content-type") ?? "", text };
  }

  async function openOnce(call: ExchangeCall): Promise<Attempt<FrameReader> & { readonly noSuchRoute?: boolean }> {
    let answer: ExchangeAnswer | undefined;
    try {
      tracer?.request(call);
      answer = await exchange(call);
      if (isSuccess(answer.status) && isEventStream(answer)) {
        tracer?.response(call, answer);
        return { ok: true, value: readFrames(answer, calling, call, { silenceMs: setup.streamSilenceMs, report }) };
      }
      // Instead of a stream, peers send an error as usual, and some send the only frame there would be.
      const whole = await readWhole(call, answer);
      if (!isSuccess(answer.status)) calling.decode("get", whole);
      const { losses, value } = calling.decodeFrame({ data: whole.text, event: "message", id: undefined });
      report(losses);
      return { ok: true, value: singleFrame(value) };
    } catch (error) {
      const failed = failure(error, call, answer);
      return { ...failed, noSuchRoute: isNoSuchRoute(failed.error, answer?.status) };
    }
  }

  return {
    setup,
    async ask(operation, settings, onRepeat) {
      const tries = triesFor(operation.kind, setup.requestRetry, settings.idempotencyKey);
      const backoff = createRetryBackoff(tries, setup.requestRetry);
      for (;;) {
        const made = await attempt(operation, settings);
        if (made.ok) return made.value;
        const wait = made.transient ? backoff.next() : undefined;
        if (wait === undefined) throw made.error;
        onRepeat?.();
        notify({ kind: "reconnect", message: `${made.error.message} Trying again.` });
        await pause(waitFor(wait, made.error), settings.signal, setup.interface.url);
      }
    },
    async open(operation, settings) {
      const call = encode(operation, settings);
      const other = calling.alternative?.(call);
      if (other === undefined) return openOnce(call);
      if (prefersAlternative) return openOnce(other);
      const usual = await openOnce(call);
      if (usual.ok || usual.noSuchRoute !== true) return usual;
      const tried = await openOnce(other);
      if (!tried.ok) return tried.noSuchRoute === true ? usual : tried;
      prefersAlternative = true;
      notify({ kind: "fallback", message: `The agent knows this only as ${other.method}, not as ${call.method}.` });
      return tried;
    },
  };
}

/** Waits; an abort is reported as an abort of the call that would have followed. */
export async function pause(milliseconds: number, signal: AbortSignal, url: string): Promise<void> {
  try {
    await sleep(milliseconds, signal);
  } catch (error) {
    throw connectionError(error, { method: "The wait to reach", url });
  }
}

function failure(error: unknown, call: ExchangeCall, answer: ExchangeAnswer | undefined): Failure {
  if (!ProtocolError.is(error)) {
    const failed = connectionError(error, call);
    return { ok: false, error: failed, transient: isTransient(failed) };
  }
  const status = answer?.status ?? 0;
  const said = withRetryAfter(error, answer);
  // A server that stumbles says so by a status, or within the protocol, where JSON-RPC has no status to say it by.
  const stumbled = said.code === "INTERNAL_ERROR" || (status >= 500 && said.code === "INVALID_AGENT_RESPONSE");
  return { ok: false, error: said, transient: stumbled || isTransient(said) };
}

function withRetryAfter(error: ProtocolError, answer: ExchangeAnswer | undefined): ProtocolError {
  const header = answer?.headers.get("retry-after");
  if (error.retryAfter !== undefined || header === null || header === undefined) return error;
  const retryAfter = Number(header);
  if (!Number.isFinite(retryAfter) || retryAfter < 0) return error;
  const { code, data, message, metadata, violations } = error;
  return new ProtocolError(code, message, {
    retryAfter,
    cause: error.cause,
    ...(metadata === undefined ? {} : { metadata }),
    ...(violations === undefined ? {} : { violations }),
    ...(data === undefined ? {} : { data }),
  });
}

function isNoSuchRoute(error: Failure["error"], status: number | undefined): boolean {
  if (!ProtocolError.is(error)) return false;
  return status === 405 || ((status === 404 || status === 501) && error.code === "METHOD_NOT_FOUND");
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function isEventStream(answer: ExchangeAnswer): boolean {
  return (answer.headers.get("content-type") ?? "").trim().toLowerCase().startsWith("text/event-stream");
}

function singleFrame(frame: StreamFrame): FrameReader {
  async function* frames() {
    yield [frame];
  }
  return { frames: frames(), cancel() {}, closeWithin() {} };
}
