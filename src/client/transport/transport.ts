/** Interface of the transports: one attempt of an operation or a stream. Retries and failover are in `call/`. */

import type { CallTarget, ExchangeCalling, FrameDecoder, SigningKeys } from "../../dialects/contract.ts";
import type { Signal } from "../../model/abort.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { Operation, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import type { TraceContext } from "../../model/trace.ts";
import type { ExchangeAnswer, ExchangeCall } from "../../wire/exchange.ts";
import { SseBatch, type SseEvent } from "../../wire/sse.ts";
import { ConnectionError, redactUrl, toConnectionError } from "../errors.ts";
import type { ChosenInterface } from "../options.ts";
import type { Tracer } from "./trace.ts";

export interface CallSettings {
  readonly signal: Signal;
  readonly timeoutMs: number | undefined;
  /** When the result of a send is no longer waited for, in milliseconds since the epoch; for transports that can tell. */
  readonly deadline?: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly extensions: readonly string[];
  readonly trace?: TraceContext | undefined;
}

/**
 * How far a failed attempt got. `unsaid`: the dialect cannot express the operation, or only with a refused loss;
 * `untaken`: the failure shows that the agent received nothing, so another interface can be tried;
 * `unknown`: the agent may have received it.
 */
export type Reach = "unsaid" | "untaken" | "unknown";

export interface Failure {
  readonly ok: false;
  readonly error: ProtocolError | ConnectionError;
  readonly transient: boolean;
  readonly reach: Reach;
}

export type Attempt<T> = { readonly ok: true; readonly value: T } | Failure;

export type StreamOperation = Extract<Operation, { kind: "stream" | "subscribe" }>;
export type UnaryOperation = Exclude<Operation, StreamOperation>;

/** Neither method rejects: errors are returned as failures. */
export interface Transport {
  attempt<O extends UnaryOperation>(operation: O, settings: CallSettings): Promise<Attempt<OutcomeOf<O>>>;
  open(operation: StreamOperation, settings: CallSettings): Promise<Attempt<FrameReader>>;
}

export interface TransportSetup {
  readonly headers: Readonly<Record<string, string>>;
  readonly keys?: SigningKeys | undefined;
  /** Code of a user's login, in dialects with user logins. */
  readonly authCode?: string | undefined;
  readonly extensions: readonly string[];
  readonly timeoutMs: number;
  readonly streamSilenceMs: number;
  readonly tracer: Tracer | undefined;
  /** Reports what a codec lost; throws LOSS_REFUSED in strict mode. */
  readonly report: (losses: readonly Loss[]) => void;
  /** Notifies the user that a fallback was used. */
  readonly notifyFallback: (message: string) => void;
}

export function callTarget(
  operation: Operation,
  settings: CallSettings,
  chosen: ChosenInterface,
  setup: Pick<TransportSetup, "extensions" | "headers" | "keys">,
): CallTarget {
  const key = operation.kind === "send" || operation.kind === "stream" ? settings.idempotencyKey : undefined;
  const { trace } = settings;
  const traced = trace === undefined ? setup : { ...setup, headers: { ...setup.headers, ...trace } };
  return {
    ...peerTarget(chosen, traced),
    extensions: [...new Set([...setup.extensions, ...settings.extensions])],
    ...(key === undefined ? {} : { idempotencyKey: key }),
  };
}

/** For requests that are not part of an operation. */
export function peerTarget(
  { tenant, url }: ChosenInterface,
  { headers, keys }: Pick<TransportSetup, "headers" | "keys">,
): CallTarget {
  const signing = keys === undefined ? {} : { keys: { ...keys, now: Date.now() } };
  return { url, tenant, headers, extensions: [], ...signing };
}

/** Failure for an operation that the encoder rejected; anything but a ProtocolError is a bug and rethrown. */
export function encodingFailure(error: unknown): Failure {
  if (!ProtocolError.is(error)) throw error;
  return { ok: false, error, transient: false, reach: "unsaid" };
}

/** The peer does not support the dialect or this operation, and so cannot have done anything. */
export function isUnknownToPeer(error: unknown): boolean {
  return ProtocolError.is(error) && (error.code === "METHOD_NOT_FOUND" || error.code === "VERSION_NOT_SUPPORTED");
}

/** Frames of one connection, batched as they arrive from the network. */
export interface FrameReader {
  /** Ends when the peer closes; fails with `ProtocolError` for its errors, `ConnectionError` for a broken stream. */
  readonly frames: AsyncGenerator<readonly StreamFrame[], void, undefined>;
  cancel(): void;
  /** No more frames of interest: if the peer does not close within this time, the stream ends as if it had. */
  closeWithin(milliseconds: number): void;
}

/** Waits until the first frames arrive, the stream ends or it fails; returns an equivalent reader, and the failure. */
export async function awaitFirstFrames(
  reader: FrameReader,
): Promise<{ readonly reader: FrameReader; readonly failure: unknown }> {
  let first: IteratorResult<readonly StreamFrame[], void> | undefined;
  let failure: unknown;
  try {
    first = await reader.frames.next();
  } catch (error) {
    failure = error;
  }
  async function* frames(): AsyncGenerator<readonly StreamFrame[], void, undefined> {
    if (failure !== undefined) throw failure;
    if (first === undefined || first.done === true) return;
    yield first.value;
    yield* reader.frames;
  }
  return {
    reader: { frames: frames(), cancel: () => reader.cancel(), closeWithin: (time) => reader.closeWithin(time) },
    failure,
  };
}

type FrameSetup = Pick<TransportSetup, "report" | "streamSilenceMs"> & Partial<Pick<TransportSetup, "tracer">>;

export function readFrames(
  answer: ExchangeAnswer,
  decoder: FrameDecoder,
  call: ExchangeCall,
  { report, streamSilenceMs: silenceMs, tracer }: FrameSetup,
): FrameReader {
  let silent = false;
  let waiting = false;
  let closing: NodeJS.Timeout | undefined;

  /** Time in which the consumer does not read is not counted. */
  const onSilence = (): void => {
    if (!waiting) return;
    silent = true;
    answer.cancel();
  };

  function decodeEvent({ data, event, lastEventId }: SseEvent) {
    if (data === "") return { losses: [], value: [] };
    tracer?.message(call, data);
    return decoder.decode({ data, event, id: lastEventId === "" ? undefined : lastEventId });
  }

  // One generator from the chunks to the frames: each further one would cost as much as decoding a short event.
  async function* frames(): AsyncGenerator<readonly StreamFrame[], void, undefined> {
    const chunks = answer.chunks[Symbol.asyncIterator]();
    const events = new SseBatch();
    const silence = setTimeout(onSilence, silenceMs);
    try {
      for (;;) {
        waiting = true;
        // Any byte resets the timer, comments included.
        silence.refresh();
        const step = await chunks.next();
        waiting = false;
        if (step.done === true) break;
        const batch = events.push(step.value);
        const { failure = batch.failure, read } = decodeAll(batch.events, decodeEvent, report);
        if (read.length > 0) yield read;
        if (failure !== undefined) throw failure;
      }
      const rest = silent ? [] : (decoder.end?.() ?? []);
      if (rest.length > 0) yield rest;
    } catch (error) {
      if (ProtocolError.is(error)) throw error;
      throw toConnectionError(error, call);
    } finally {
      clearTimeout(silence);
      clearTimeout(closing);
      answer.cancel();
    }
    if (silent) {
      throw new ConnectionError(
        "broken-stream",
        `${call.method} ${redactUrl(call.url)} sent nothing for ${silenceMs} ms, not even a comment; the connection counts as broken. Raise streamSilenceMs if the agent is known to be that quiet.`,
      );
    }
  }

  return {
    frames: frames(),
    cancel: () => answer.cancel(),
    closeWithin(milliseconds) {
      closing ??= setTimeout(() => answer.cancel(), milliseconds);
    },
  };
}

export function createFrameDecoder(calling: ExchangeCalling, operation: Operation): FrameDecoder {
  const decodeEach = (frame: Parameters<FrameDecoder["decode"]>[0]) => {
    const { losses, value } = calling.decodeFrame(frame);
    return { losses, value: [value] };
  };
  return calling.openFrames?.(operation) ?? { decode: decodeEach };
}

/** Frames before one that cannot be decoded are still delivered. */
export function decodeAll<T>(
  items: readonly T[],
  decode: (item: T) => { readonly losses: readonly Loss[]; readonly value: readonly StreamFrame[] },
  report: (losses: readonly Loss[]) => void,
): { readonly read: readonly StreamFrame[]; readonly failure: unknown } {
  const read: StreamFrame[] = [];
  for (const item of items) {
    try {
      const { losses, value } = decode(item);
      if (losses.length > 0) report(losses);
      read.push(...value);
    } catch (failure) {
      return { read, failure };
    }
  }
  return { read, failure: undefined };
}
