/** Calling over HTTP, through any `fetch` or like it: deadlines, a bound on what is read, and one class of error. */

import type { Signal } from "../model/abort.ts";
import { canParseUrl } from "../model/url.ts";
import {
  CarrierError,
  type CarrierErrorCode,
  type ExchangeAnswer,
  type ExchangeCall,
  type Exchanger,
} from "./exchange.ts";

export interface ExchangerOptions {
  /** Bounds what `text()` reads. Streams have no total; their reader bounds each event. */
  readonly maxBodyBytes?: number;
}

const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024;

type StopReason = "timeout" | "aborted" | "too-large" | "cancelled";

const MESSAGES = {
  unreachable: "The server could not be reached",
  timeout: "The server did not answer in time",
  aborted: "The call was aborted",
  "too-large": "The answer is larger than allowed",
  "broken-stream": "The connection broke while the answer was read",
} satisfies Record<CarrierErrorCode, string>;

export function carrierError(code: CarrierErrorCode, url: string, cause?: unknown): CarrierError {
  return new CarrierError(code, `${MESSAGES[code]}: ${redactUrl(url)}`, cause === undefined ? undefined : { cause });
}

/** Messages end up in logs, while queries and user info may hold keys. */
function redactUrl(url: string): string {
  if (!canParseUrl(url)) return "invalid URL";
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/**
 * Everything that can end a call early meets here, so that the first reason wins: a carrier only ever reports an abort.
 * (`AbortSignal.any` would do for the signals, but keeps each call alive as long as a long-lived caller's signal.)
 */
class CallStop {
  readonly #callerSignal: Signal | undefined;
  #timer: NodeJS.Timeout | undefined;
  reason: StopReason | undefined;
  /** Set by the carrier: ends the request and its answer. May be called more than once, and after the end. */
  onStop: (() => void) | undefined;

  constructor(callerSignal: Signal | undefined) {
    this.#callerSignal = callerSignal;
    if (callerSignal?.aborted) this.stop("aborted");
    else callerSignal?.addEventListener("abort", this.#onAbort);
  }

  get isCancelled(): boolean {
    return this.reason === "cancelled";
  }

  stop(reason: StopReason): void {
    this.reason ??= reason;
    this.release();
    this.onStop?.();
  }

  startTimer(timeoutMs: number | undefined): void {
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.stop("timeout"), timeoutMs);
  }

  clearTimer(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  release(): void {
    this.clearTimer();
    this.#callerSignal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.stop("aborted");
}

/** The head of an answer, and the body if there is one. A `Response` is such an answer. */
interface CarriedAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Resolves with any answer; rejects if there is none, or when `stop` stops it. */
type SendRequest = (call: ExchangeCall, stop: CallStop) => Promise<CarriedAnswer>;

export function createExchanger(send: SendRequest, options: ExchangerOptions = {}): Exchanger {
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options;

  return async (call) => {
    const stop = new CallStop(call.signal);
    stop.startTimer(call.timeoutMs);
    try {
      const answer = await send(call, stop);
      stop.clearTimer();
      return new ReadAnswer(call, answer, stop, maxBodyBytes);
    } catch (cause) {
      stop.release();
      const { reason } = stop;
      throw carrierError(reason === undefined || reason === "cancelled" ? "unreachable" : reason, call.url, cause);
    }
  };
}

export function createFetchExchanger(fetch: typeof globalThis.fetch, options: ExchangerOptions = {}): Exchanger {
  return createExchanger((call, stop) => {
    const controller = new AbortController();
    stop.onStop = () => controller.abort();
    if (stop.reason !== undefined) controller.abort();
    return fetch(call.url, {
      method: call.method,
      headers: { ...call.headers },
      signal: controller.signal,
      body: call.body,
    });
  }, options);
}

const DECODER = new TextDecoder();
const DONE: IteratorResult<Uint8Array, undefined> = { done: true, value: undefined };

/** The answer and the iterator over its chunks in one: a generator for each layer would be the larger part of a short call. */
class ReadAnswer implements ExchangeAnswer, AsyncIterator<Uint8Array, undefined> {
  readonly status: number;
  readonly headers: ExchangeAnswer["headers"];
  readonly #call: ExchangeCall;
  readonly #stop: CallStop;
  readonly #maxBodyBytes: number;
  readonly #body: AsyncIterator<Uint8Array> | undefined;

  constructor(call: ExchangeCall, { body, headers, status }: CarriedAnswer, stop: CallStop, maxBodyBytes: number) {
    this.status = status;
    this.headers = headers;
    this.#call = call;
    this.#stop = stop;
    this.#maxBodyBytes = maxBodyBytes;
    this.#body = body?.[Symbol.asyncIterator]();
    if (body === null) stop.release();
  }

  get chunks(): AsyncIterable<Uint8Array> {
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const stop = this.#stop;
    if (this.#body === undefined || stop.isCancelled) return DONE;
    try {
      const step = await this.#body.next();
      if (step.done !== true) return step;
    } catch (cause) {
      stop.release();
      const { reason = "broken-stream" } = stop;
      if (reason === "cancelled") return DONE;
      throw carrierError(reason, this.#call.url, cause);
    }
    stop.release();
    return DONE;
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.cancel();
    return DONE;
  }

  async text(): Promise<string> {
    if (this.#body === undefined) return "";
    const stop = this.#stop;
    if (Number(this.headers.get("content-length")) > this.#maxBodyBytes) this.#refuseSize();
    stop.startTimer(this.#call.timeoutMs);
    const parts: Uint8Array[] = [];
    let size = 0;
    try {
      for (let step = await this.next(); step.done !== true; step = await this.next()) {
        size += step.value.byteLength;
        if (size > this.#maxBodyBytes) this.#refuseSize();
        parts.push(step.value);
      }
    } finally {
      stop.clearTimer();
    }
    // A cancelled body ends quietly for those who iterate, but half a text must not pass for a whole one.
    if (stop.isCancelled) throw carrierError("aborted", this.#call.url);
    return DECODER.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }

  cancel(): void {
    this.#stop.stop("cancelled");
  }

  #refuseSize(): never {
    this.#stop.stop("too-large");
    throw carrierError("too-large", this.#call.url);
  }
}
