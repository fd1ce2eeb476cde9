/** Interface of the transports: one attempt of an operation or a stream. Retries and failover are in `call/`. */

import type { CallTarget, ExchangeCalling, FrameDecoder, SigningKeys } from "../../dialects/contract.ts";
import type { Signal } from "../../model/abort.ts";
import { ProtocolError } from "../../model/errors.ts";
import { type TaskEvent, taskIdOf } from "../../model/event.ts";
import type { Loss } from "../../model/loss.ts";
import type { Operation, OutcomeOf, SendOutcome, StreamFrame } from "../../model/operation.ts";
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
  const headers = trace === undefined ? setup.headers : { ...setup.headers, ...trace };
  return peerTarget(chosen, { headers, keys: setup.keys }, joinLists(setup.extensions, settings.extensions), key);
}

function joinLists(always: readonly string[], more: readonly string[]): readonly string[] {
  return always.length === 0 ? more : [...new Set([...always, ...more])];
}

/** Without extensions and key: for requests that are not part of an operation. */
export function peerTarget(
  { tenant, url }: ChosenInterface,
  { headers, keys }: Pick<TransportSetup, "headers" | "keys">,
  extensions: readonly string[] = [],
  idempotencyKey?: string,
): CallTarget {
  const signing = keys === undefined ? undefined : { ...keys, now: Date.now() };
  return { url, tenant, headers, extensions, idempotencyKey, keys: signing };
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
  readonly frames: AsyncIterableIterator<readonly StreamFrame[], void, undefined>;
  /** Waits until the first frames can be read, the stream ends or it fails; resolves with the failure. */
  awaitFirst(): Promise<unknown>;
  cancel(): void;
  /**
   * No more frames of interest: if the peer does not close within this time, the stream ends as if it had. Meanwhile one
   * that is left or cancelled is received to its end, so that its connection can be used again.
   */
  closeWithin(milliseconds: number): void;
}

type ReadFrames = IteratorResult<readonly StreamFrame[], void>;

export const NO_MORE_FRAMES: ReadFrames = { done: true, value: undefined };

/** The reader and its iterator in one, because every frame of a stream passes through it. */
export abstract class ConnectionFrames
  implements FrameReader, AsyncIterableIterator<readonly StreamFrame[], void, undefined>
{
  #first: Promise<ReadFrames> | undefined;

  get frames(): this {
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<ReadFrames> {
    const next = this.#first ?? this.read();
    this.#first = undefined;
    return next;
  }

  async return(): Promise<ReadFrames> {
    this.cancel();
    return NO_MORE_FRAMES;
  }

  awaitFirst(): Promise<unknown> {
    this.#first ??= this.read();
    return this.#first.then(
      () => undefined,
      (error: unknown) => error,
    );
  }

  protected abstract read(): Promise<ReadFrames>;
  abstract cancel(): void;
  abstract closeWithin(milliseconds: number): void;
}

type FrameSetup = Pick<TransportSetup, "report" | "streamSilenceMs"> & Partial<Pick<TransportSetup, "tracer">>;

export function readFrames(
  answer: ExchangeAnswer,
  decoder: FrameDecoder,
  call: ExchangeCall,
  setup: FrameSetup,
): FrameReader {
  return new AnswerFrames(answer, decoder, call, setup);
}

/** Received at most of a stream that is no longer read. */
const MAX_DRAINED_BYTES = 64 * 1024;

/** The frames of one answer over HTTP. */
class AnswerFrames extends ConnectionFrames {
  readonly #answer: ExchangeAnswer;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder: FrameDecoder;
  readonly #call: ExchangeCall;
  readonly #setup: FrameSetup;
  readonly #events = new SseBatch();
  #silence: NodeJS.Timeout | undefined;
  #closing: NodeJS.Timeout | undefined;
  #isSilent = false;
  #isWaiting = false;
  #isOver = false;
  /** Of the event after those that were returned last. */
  #failure: unknown;

  constructor(answer: ExchangeAnswer, decoder: FrameDecoder, call: ExchangeCall, setup: FrameSetup) {
    super();
    this.#answer = answer;
    this.#chunks = answer.chunks[Symbol.asyncIterator]();
    this.#decoder = decoder;
    this.#call = call;
    this.#setup = setup;
  }

  protected async read(): Promise<ReadFrames> {
    if (this.#isOver) return NO_MORE_FRAMES;
    try {
      const read = await this.#readBatch();
      if (read !== undefined) return { done: false, value: read };
      this.#end();
      if (this.#isSilent) throw silenceError(this.#call, this.#setup.streamSilenceMs);
      const rest = this.#decoder.end?.() ?? [];
      return rest.length > 0 ? { done: false, value: rest } : NO_MORE_FRAMES;
    } catch (error) {
      this.#end();
      throw ProtocolError.is(error) ? error : toConnectionError(error, this.#call);
    }
  }

  cancel(): void {
    if (this.#isOver) return;
    if (this.#closing === undefined || this.#isWaiting) {
      this.#end();
      return;
    }
    this.#isOver = true;
    void this.#drain();
  }

  closeWithin(milliseconds: number): void {
    if (!this.#isOver) this.#closing ??= setTimeout(() => this.#answer.cancel(), milliseconds);
  }

  async #drain(): Promise<void> {
    let bytes = 0;
    try {
      for (let step = await this.#chunks.next(); step.done !== true; step = await this.#chunks.next()) {
        bytes += step.value.byteLength;
        if (bytes > MAX_DRAINED_BYTES) return;
      }
    } catch {
      // The connection broke, which makes no difference any more.
    } finally {
      this.#end();
    }
  }

  /** Undefined at the end of the answer. */
  async #readBatch(): Promise<readonly StreamFrame[] | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      this.#isWaiting = true;
      // Any byte resets the timer, comments included.
      if (this.#silence === undefined) this.#silence = setTimeout(this.#onSilence, this.#setup.streamSilenceMs);
      else this.#silence.refresh();
      const step = await this.#chunks.next();
      this.#isWaiting = false;
      if (step.done === true) return undefined;
      const batch = this.#events.push(step.value);
      const { failure = batch.failure, read } = decodeAll(batch.events, this.#decode, this.#setup.report);
      this.#failure = failure;
      if (read.length > 0) return read;
    }
  }

  readonly #decode = ({ data, event, lastEventId }: SseEvent): ReturnType<FrameDecoder["decode"]> => {
    if (data === "") return { losses: [], value: [] };
    this.#setup.tracer?.message(this.#call, data);
    return this.#decoder.decode({ data, event, id: lastEventId === "" ? undefined : lastEventId });
  };

  /** Time in which the consumer does not read is not counted. */
  readonly #onSilence = (): void => {
    if (!this.#isWaiting) return;
    this.#isSilent = true;
    this.#answer.cancel();
  };

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#closing);
    this.#answer.cancel();
  }
}

function silenceError({ method, url }: ExchangeCall, silenceMs: number): ConnectionError {
  return new ConnectionError(
    "broken-stream",
    `${method} ${redactUrl(url)} sent nothing for ${silenceMs} ms, not even a comment; the connection counts as broken. Raise streamSilenceMs if the agent is known to be that quiet.`,
  );
}

export function createFrameDecoder(calling: ExchangeCalling, operation: Operation): FrameDecoder {
  const identify = createIdentifier(operation);
  const decodeEach = (frame: Parameters<FrameDecoder["decode"]>[0]) => {
    const { losses, value } = calling.decodeFrame(frame);
    return { losses, value: value === undefined ? [] : [identify(value)] };
  };
  return calling.openFrames?.(operation) ?? { decode: decodeEach };
}

/** The id of the task that the caller names. */
function namedTask(operation: Operation): string | undefined {
  if (operation.kind === "send" || operation.kind === "stream") return operation.message.taskId;
  return "id" in operation ? operation.id : undefined;
}

/** An agent that leaves out the id of a task means the one it was asked about, or that of its earlier events. */
export function createIdentifier(operation: Operation): (frame: StreamFrame) => StreamFrame {
  let known = namedTask(operation);
  return (frame) => {
    const { event } = frame;
    if ("message" in event) return frame;
    const id = taskIdOf(event);
    if (id !== "") {
      known = id;
      return frame;
    }
    if (known === undefined) return frame;
    const named = withTaskId(event, known);
    const { number } = frame;
    return { event: named, json: JSON.stringify(named), ...(number === undefined ? undefined : { number }) };
  };
}

/** The same for the result of a call. */
export function identifyOutcome<O extends UnaryOperation>(operation: O, outcome: OutcomeOf<O>): OutcomeOf<O> {
  const isTask = operation.kind === "get" || operation.kind === "cancel";
  if (!isTask && operation.kind !== "send") return outcome;
  const event = (isTask ? { task: outcome } : outcome) as SendOutcome;
  const id = namedTask(operation);
  if ("message" in event || event.task.id !== "" || id === undefined) return outcome;
  const task = { ...event.task, id };
  return (isTask ? task : { task }) as OutcomeOf<O>;
}

function withTaskId(event: TaskEvent, taskId: string): TaskEvent {
  if ("task" in event) return { task: { ...event.task, id: taskId } };
  if ("statusUpdate" in event) return { statusUpdate: { ...event.statusUpdate, taskId } };
  return { artifactUpdate: { ...event.artifactUpdate, taskId } };
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
