/**
 * A stream of frames as server-sent events: one write per batch, comments as keep-alive, and an immediate end when the
 * reader disconnects, even if the source is still waiting.
 */
import { EXTENSIONS } from "../../../model/extensions.ts";
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { isTerminal } from "../../../model/task.ts";
import { type Membership, TransientSet } from "../../../model/transient.ts";
import { type FullReply, PRIVATE_NO_STORE, type RequestHead, type StreamReply } from "../../../wire/exchange.ts";
import { DONE } from "../../../wire/pipe-frames.ts";
import { encodeSseComment } from "../../../wire/sse.ts";
import { parseLastEventId } from "./requests.ts";

interface EventStreamOptions {
  readonly keepAliveMs: number;
  readonly framing: EventFraming;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** How a binding encodes events. One object per stream, or one for all: there may be ten thousand streams. */
export interface EventFraming {
  /** Encodes a batch as one string. */
  encode(batch: readonly StreamFrame[]): string;
  /** Encodes a failure of the source after the stream has started. */
  encodeFailure(error: unknown): string;
  /** Sent when the stream has been idle, where a comment is not sufficient. */
  keepAlive?(): string | undefined;
}

export const EVENT_STREAM_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  "content-type": "text/event-stream",
  "cache-control": `no-cache, ${PRIVATE_NO_STORE}`,
  // Proxies like nginx would otherwise buffer events.
  "x-accel-buffering": "no",
});

/**
 * Responds immediately, even without events: a caller that resumes at the end of an idle log must see that it is
 * connected. Refusals happen before there is a source.
 */
export function eventStreamReply(source: FrameStream, options: EventStreamOptions): StreamReply {
  return {
    status: 200,
    headers: options.headers === undefined ? EVENT_STREAM_HEADERS : { ...EVENT_STREAM_HEADERS, ...options.headers },
    frames: new EventStream(source, options),
  };
}

/** Tells an EventSource to stop: after any other end of a stream, browsers connect again. */
export const STOP_RECONNECTING: FullReply = { status: 204, headers: {}, body: undefined };

/**
 * The same frames; undefined if a browser has connected again after the last event of a task that has ended. Callers
 * that resume without a snapshot are not browsers, which cannot ask for that, and are sent an empty stream.
 */
export async function unlessSeen(
  source: FrameStream,
  { headers, method }: RequestHead,
  extensions: readonly string[] = [],
): Promise<FrameStream | undefined> {
  // Elsewhere the header has no meaning, and one that cannot be read must not leave the source open.
  if (method !== "GET" || extensions.includes(EXTENSIONS.replay)) return source;
  const seen = parseLastEventId(headers["last-event-id"]);
  if (seen === undefined) return source;
  const frames = source[Symbol.asyncIterator]();
  let first: IteratorResult<readonly StreamFrame[]> | undefined = await frames.next();
  const frame = first.done === true ? undefined : first.value[0];
  if (frame?.number === seen && "task" in frame.event && isTerminal(frame.event.task.status.state)) {
    await frames.return?.();
    return undefined;
  }
  const iterator: AsyncIterator<readonly StreamFrame[]> = {
    next() {
      const next = first === undefined ? frames.next() : Promise.resolve(first);
      first = undefined;
      return next;
    },
    return: async () => (await frames.return?.()) ?? { done: true, value: undefined },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

const NO_FRAMES: readonly StreamFrame[] = [];

/** A reader that does not read holds one write of this size, plus at most one event, however much is pending. */
const MAX_WRITE_CHARACTERS = 64 * 1024;

function splitBatch(frames: readonly StreamFrame[]): { piece: readonly StreamFrame[]; rest: readonly StreamFrame[] } {
  if (frames.length === 1) return { piece: frames, rest: NO_FRAMES };
  let size = 0;
  for (let index = 0; index < frames.length; index++) {
    size += (frames[index] as StreamFrame).json.length;
    if (size > MAX_WRITE_CHARACTERS) return { piece: frames.slice(0, index + 1), rest: frames.slice(index + 1) };
  }
  return { piece: frames, rest: NO_FRAMES };
}

const KEEP_ALIVE = encodeSseComment("keep-alive");

/** Not an async generator: its `return` would wait for a pending `next`, which may never settle. */
class EventStream implements AsyncIterableIterator<string, undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #framing: EventFraming;
  readonly #pulse: KeepAliveTimer;
  readonly #membership: Membership<EventStream>;
  /** Resolves the reader's pending `next`. */
  #deliver: ((result: IteratorResult<string, undefined>) => void) | undefined;
  /** Text encoded while no `next` was pending. */
  #ready: string | undefined;
  /** Frames of the batch that did not fit into one write. */
  #rest: readonly StreamFrame[] = NO_FRAMES;
  #pulling = false;
  #sourceEnded = false;
  #closed = false;
  #busy = true;

  constructor(source: FrameStream, options: EventStreamOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#framing = options.framing;
    this.#pulse = keepAliveTimerFor(options.keepAliveMs);
    this.#membership = this.#pulse.add(this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<string, undefined>> {
    if (this.#ready !== undefined) {
      const value = this.#ready;
      this.#ready = undefined;
      this.#busy = true;
      return Promise.resolve({ done: false, value });
    }
    if (this.#sourceEnded && this.#rest.length === 0) this.#close();
    if (this.#closed) return Promise.resolve(DONE);
    return new Promise((resolve) => {
      this.#deliver = resolve;
      if (this.#rest.length > 0) this.#writeNext();
      else if (!this.#pulling) this.#pull();
    });
  }

  return(): Promise<IteratorResult<string, undefined>> {
    this.#close();
    return Promise.resolve(DONE);
  }

  /** Called twice per keep-alive interval: a full turn without a write is followed by a comment. */
  tick(): void {
    if (this.#busy) {
      this.#busy = false;
    } else {
      this.#offer(this.#framing.keepAlive?.() ?? KEEP_ALIVE);
    }
  }

  #pull(): void {
    this.#pulling = true;
    this.#source.next().then(this.#onBatch, this.#onFailure);
  }

  readonly #onBatch = (result: IteratorResult<readonly StreamFrame[]>): void => {
    this.#pulling = false;
    if (this.#closed) return;
    if (result.done === true) {
      this.#sourceEnded = true;
      if (this.#deliver !== undefined) this.#close();
      return;
    }
    if (result.value.length === 0) {
      this.#pull();
      return;
    }
    this.#rest = result.value;
    this.#writeNext();
  };

  /** Writes as much of the batch as fits into one write; the rest waits for the reader. */
  #writeNext(): void {
    const { piece, rest } = splitBatch(this.#rest);
    this.#rest = rest;
    let text = "";
    try {
      text = this.#framing.encode(piece);
    } catch (error) {
      text = this.#encodePrefix(piece);
      // The source is not aware of the failure and would wait for its reader.
      if (!this.#sourceEnded) this.#source.return?.().catch(() => {});
      this.#fail(error, text);
      return;
    }
    this.#write(text);
  }

  readonly #onFailure = (error: unknown): void => this.#fail(error, "");

  #fail(error: unknown, before: string): void {
    this.#pulling = false;
    if (this.#closed) return;
    this.#sourceEnded = true;
    this.#rest = NO_FRAMES;
    this.#write(before + this.#framing.encodeFailure(error));
  }

  /** Encodes the frames before the first one that cannot be encoded. */
  #encodePrefix(batch: readonly StreamFrame[]): string {
    let text = "";
    try {
      for (const frame of batch) text += this.#framing.encode([frame]);
    } catch {
      // The error of the whole batch is reported instead.
    }
    return text;
  }

  #write(text: string): void {
    this.#busy = true;
    if (!this.#offer(text)) this.#ready = text;
  }

  #offer(value: string): boolean {
    const deliver = this.#deliver;
    if (deliver === undefined) return false;
    this.#deliver = undefined;
    deliver({ done: false, value });
    return true;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ready = undefined;
    this.#pulse.delete(this.#membership);
    const deliver = this.#deliver;
    this.#deliver = undefined;
    deliver?.(DONE);
    // Not awaited: the reader has disconnected and does not depend on the source's cleanup.
    if (!this.#sourceEnded) this.#source.return?.().catch(() => {});
  }
}

/** One timer for all streams with the same keep-alive interval; runs only while there are any. */
class KeepAliveTimer {
  readonly #streams = new TransientSet<EventStream>();
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(keepAliveMs: number) {
    this.#intervalMs = Math.max(1, Math.floor(keepAliveMs / 2));
  }

  add(stream: EventStream): Membership<EventStream> {
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => {
        for (const each of this.#streams.values()) each.tick();
      }, this.#intervalMs);
      this.#timer.unref();
    }
    return this.#streams.add(stream);
  }

  delete(membership: Membership<EventStream>): void {
    this.#streams.delete(membership);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const keepAliveTimers = new Map<number, KeepAliveTimer>();

function keepAliveTimerFor(keepAliveMs: number): KeepAliveTimer {
  let pulse = keepAliveTimers.get(keepAliveMs);
  if (pulse === undefined) {
    pulse = new KeepAliveTimer(keepAliveMs);
    keepAliveTimers.set(keepAliveMs, pulse);
  }
  return pulse;
}
