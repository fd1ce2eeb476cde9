/** Calling over HTTP through any `fetch`: deadlines, a bound on what is read, and one class of error. */
import {
  CarrierError,
  type CarrierErrorCode,
  type ExchangeAnswer,
  type ExchangeCall,
  type Exchanger,
} from "./exchange.ts";

interface FetchExchangerOptions {
  /** Bounds what `text()` reads. Streams have no total; their reader bounds each event. */
  readonly maxBodyBytes?: number;
}

const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024;

type AbortReason = "timeout" | "aborted" | "too-large" | "cancelled";

const MESSAGES = {
  unreachable: "The server could not be reached",
  timeout: "The server did not answer in time",
  aborted: "The call was aborted",
  "too-large": "The answer is larger than allowed",
  "broken-stream": "The connection broke while the answer was read",
} satisfies Record<CarrierErrorCode, string>;

function carrierError(code: CarrierErrorCode, url: string, cause?: unknown): CarrierError {
  return new CarrierError(code, `${MESSAGES[code]}: ${redactUrl(url)}`, cause === undefined ? undefined : { cause });
}

/** Messages end up in logs, while queries and user info may hold keys. */
function redactUrl(url: string): string {
  if (!URL.canParse(url)) return "invalid URL";
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/**
 * Everything that can end a call early meets here, so that the first reason wins: `fetch` only ever reports an abort.
 * (`AbortSignal.any` would do for the signals, but keeps each call alive as long as a long-lived caller's signal.)
 */
class CallAbort {
  readonly #controller = new AbortController();
  readonly #callerSignal: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  reason: AbortReason | undefined;

  constructor(callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal;
    if (callerSignal?.aborted) this.abort("aborted");
    else callerSignal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: AbortReason): void {
    this.reason ??= reason;
    this.release();
    this.#controller.abort();
  }

  startTimer(timeoutMs: number | undefined): void {
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.abort("timeout"), timeoutMs);
  }

  clearTimer(): void {
    clearTimeout(this.#timer);
  }

  release(): void {
    this.clearTimer();
    this.#callerSignal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.abort("aborted");
}

export function createFetchExchanger(fetch: typeof globalThis.fetch, options: FetchExchangerOptions = {}): Exchanger {
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options;

  return async (call) => {
    const stop = new CallAbort(call.signal);
    stop.startTimer(call.timeoutMs);
    try {
      const response = await fetch(call.url, {
        method: call.method,
        headers: { ...call.headers },
        signal: stop.signal,
        ...(call.body === undefined ? {} : { body: call.body }),
      });
      stop.clearTimer();
      return createAnswer(call, response, stop, maxBodyBytes);
    } catch (cause) {
      stop.release();
      const { reason } = stop;
      throw carrierError(reason === undefined || reason === "cancelled" ? "unreachable" : reason, call.url, cause);
    }
  };
}

function createAnswer(call: ExchangeCall, response: Response, stop: CallAbort, maxBodyBytes: number): ExchangeAnswer {
  const { body, headers, status } = response;
  if (body === null) stop.release();

  async function* readChunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (body === null) return;
    try {
      for await (const chunk of body) yield chunk;
    } catch (cause) {
      if (stop.reason === "cancelled") return;
      throw carrierError(stop.reason ?? "broken-stream", call.url, cause);
    } finally {
      stop.release();
    }
  }

  const chunks = readChunks();

  function refuseSize(): never {
    stop.abort("too-large");
    throw carrierError("too-large", call.url);
  }

  async function text(): Promise<string> {
    if (body === null) return "";
    if (Number(headers.get("content-length")) > maxBodyBytes) refuseSize();
    stop.startTimer(call.timeoutMs);
    const parts: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const chunk of chunks) {
        size += chunk.byteLength;
        if (size > maxBodyBytes) refuseSize();
        parts.push(chunk);
      }
    } finally {
      stop.clearTimer();
    }
    // A cancelled body ends quietly for those who iterate, but half a text must not pass for a whole one.
    if (stop.reason === "cancelled") throw carrierError("aborted", call.url);
    return new TextDecoder().decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }

  return { status, headers, text, chunks, cancel: () => stop.abort("cancelled") };
}
