/**
 * A stream of frames as server-sent events: whole batches in one write, comments while nothing happens, and an end that
 * comes at once when the reader leaves, whatever the source is waiting for.
 */
import type { FrameStream, StreamFrame } from "../../../model/operation.ts";
import { PRIVATE_NO_STORE, type StreamReply } from "../../../wire/exchange.ts";
import { DONE } from "../../../wire/pipe-frames.ts";
import { encodeSseComment } from "../../../wire/sse.ts";

interface EventStreamOptions {
  readonly keepAliveMs: number;
  readonly framing: EventFraming;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** How a binding writes events. One object for a stream, or for all of them: there may be ten thousand streams. */
export interface EventFraming {
  /** A batch as events, in one text. */
  encode(batch: readonly StreamFrame[]): string;
  /** What is said when the source fails after the stream has begun. */
  encodeFailure(error: unknown): string;
  /** What is said when nothing was for a while, where a comment will not do. */
  keepAlive?(): string | undefined;
}

export const EVENT_STREAM_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  "content-type": "text/event-stream",
  "cache-control": `no-cache, ${PRIVATE_NO_STORE}`,
  // Proxies of the nginx kind would otherwise collect events before they pass them on.
  "x-accel-buffering": "no",
});

/**
 * Opens at once, also when there is nothing to say yet: whoever resumes at the end of a quiet log must see that it is
 * connected. What can be refused has been refused before there is a source.
 */
export function eventStreamReply(source: FrameStream, options: EventStreamOptions): StreamReply {
  return {
    status: 200,
    headers: options.headers === undefined ? EVENT_STREAM_HEADERS : { ...EVENT_STREAM_HEADERS, ...options.headers },
    frames: new EventStream(source, options),
  };
}

const NO_FRAMES: readonly StreamFrame[] = [];

/** A reader that does not read holds one write of this size, plus at most one event, however much there is to say. */
const MAX_WRITE_CHARACTERS = 64 * 1024;

function splitBatch(frames: readonly StreamFrame[]): { piece: readonly StreamFrame[]; rest: readonly StreamFrame[] } {
  let size = 0;
  for (let index = 0; index < frames.length; index++) {
    size += (frames[index] as StreamFrame).json.length;
    if (size > MAX_WRITE_CHARACTERS) return { piece: frames.slice(0, index + 1), rest: frames.slice(index + 1) };
  }
  return { piece: frames, rest: NO_FRAMES };
}

const KEEP_ALIVE = encodeSseComment("keep-alive");

/** Not an async generator: the `return` of one waits for a pending `next`, which may never come. */
class EventStream implements AsyncIterableIterator<string, undefined> {
  readonly #source: AsyncIterator<readonly StreamFrame[]>;
  readonly #framing: EventFraming;
  readonly #pulse: KeepAliveTimer;
  /** The reader waits for this to be called. */
  #deliver: ((result: IteratorResult<string, undefined>) => void) | undefined;
  /** Text that came when nobody was waiting. */
  #ready: string | undefined;
  /** Frames of a batch that did not fit into one write. */
  #rest: readonly StreamFrame[] = NO_FRAMES;
  #pulling = false;
  #sourceEnded = false;
  #closed = false;
  #busy = true;

  constructor(source: FrameStream, options: EventStreamOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#framing = options.framing;
    this.#pulse = keepAliveTimerFor(options.keepAliveMs);
    this.#pulse.add(this);
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
      if (this.#rest.length > 0) this.#sayNext();
      else if (!this.#pulling) this.#pull();
    });
  }

  return(): Promise<IteratorResult<string, undefined>> {
    this.#close();
    return Promise.resolve(DONE);
  }

  /** Twice in the keep-alive time: a whole turn without anything said is followed by a comment. */
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
    this.#sayNext();
  };

  /** Says as much of the batch as fits into one write; the rest waits for the reader. */
  #sayNext(): void {
    const { piece, rest } = splitBatch(this.#rest);
    this.#rest = rest;
    let text = "";
    try {
      text = this.#framing.encode(piece);
    } catch (error) {
      text = this.#sayable(piece);
      // The source knows nothing of it and would be kept waiting for its reader.
      if (!this.#sourceEnded) this.#source.return?.().catch(() => {});
      this.#fail(error, text);
      return;
    }
    this.#say(text);
  }

  readonly #onFailure = (error: unknown): void => this.#fail(error, "");

  #fail(error: unknown, before: string): void {
    this.#pulling = false;
    if (this.#closed) return;
    this.#sourceEnded = true;
    this.#rest = NO_FRAMES;
    this.#say(before + this.#framing.encodeFailure(error));
  }

  /** Of a batch that cannot be said as a whole, the part before what cannot be said. */
  #sayable(batch: readonly StreamFrame[]): string {
    let text = "";
    try {
      for (const frame of batch) text += this.#framing.encode([frame]);
    } catch {
      // That it cannot be said is told by the error of the whole batch.
    }
    return text;
  }

  #say(text: string): void {
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
    this.#pulse.delete(this);
    const deliver = this.#deliver;
    this.#deliver = undefined;
    deliver?.(DONE);
    // Not awaited: the reader has left, and what the source does on its way out is its own business.
    if (!this.#sourceEnded) this.#source.return?.().catch(() => {});
  }
}

/** One timer for all streams with the same keep-alive time; it runs only while there are any. */
class KeepAliveTimer {
  readonly #streams = new Set<EventStream>();
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(keepAliveMs: number) {
    this.#intervalMs = Math.max(1, Math.floor(keepAliveMs / 2));
  }

  add(stream: EventStream): void {
    this.#streams.add(stream);
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => {
      for (const each of this.#streams) each.tick();
    }, this.#intervalMs);
    this.#timer.unref();
  }

  delete(stream: EventStream): void {
    this.#streams.delete(stream);
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
