import type { Dispatcher } from "undici";
import { GuardedFetchError } from "./errors.ts";

/** Received ahead of the reader; then the connection is paused until the reader has caught up. */
const MAX_WAITING_BYTES = 64 * 1024;

type RawHeaders = Readonly<Record<string, string | string[] | undefined>>;

class AnswerHeaders {
  readonly #raw: RawHeaders;

  constructor(raw: RawHeaders) {
    this.#raw = raw;
  }

  get(name: string): string | null {
    const value = this.#raw[name.toLowerCase()];
    if (value === undefined) return null;
    return typeof value === "string" ? value : value.join(", ");
  }

  *[Symbol.iterator](): Generator<readonly [string, string], void, undefined> {
    for (const [name, value = []] of Object.entries(this.#raw)) {
      for (const one of Array.isArray(value) ? value : [value]) yield [name, one];
    }
  }
}

/**
 * The answer to one request while it is received, directly from the library's parser: streams would cost more than all
 * the rest of a short call. Its body is read by one reader at a time, and in as few steps as possible: what has arrived
 * meanwhile is one chunk.
 */
export class IncomingAnswer implements Dispatcher.DispatchHandler, AsyncIterableIterator<Uint8Array, undefined> {
  /** Rejects with a GuardedFetchError, or with the reason of `abort`. */
  readonly head: Promise<this>;
  status = 0;
  headers = new AnswerHeaders({});
  #resolveHead: (answer: this) => void = () => {};
  #rejectHead: (error: unknown) => void = () => {};
  #controller: Dispatcher.DispatchController | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  #isComplete = false;
  #failure: { readonly error: unknown } | undefined;
  /** Set once the body is not read: pieces that are still received and dropped, so that the connection can be used again. */
  #droppedPieces: number | undefined;

  constructor() {
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve;
      this.#rejectHead = reject;
    });
  }

  get body(): this {
    return this;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#failure === undefined) this.#controller = controller;
    else controller.abort(new GuardedFetchError("unreachable"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: RawHeaders): void {
    if (status < 200) return;
    this.status = status;
    this.headers = new AnswerHeaders(headers);
    this.#resolveHead(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#failure !== undefined) return;
    if (this.#droppedPieces !== undefined) {
      if (this.#droppedPieces-- === 0) this.#stop(undefined);
      return;
    }
    this.#waiting.push(piece);
    this.#waitingBytes += piece.byteLength;
    if (this.#waitingBytes >= MAX_WAITING_BYTES) controller.pause();
    this.#wake?.();
  }

  onResponseEnd(): void {
    this.#isComplete = true;
    this.#wake?.();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(toRequestError(error));
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#waitingBytes > 0 || this.#isComplete || this.#failure !== undefined) {
      return new Promise((resolve) => resolve(this.#take()));
    }
    const arrived = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    // The parser is done with all that was read from the socket before this continues.
    return arrived.then(() => this.#take());
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#stop(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The head and what is read of the body reject with the reason. Closes the connection unless all was received. */
  abort(reason: unknown): void {
    this.#stop({ error: reason });
  }

  /** The body is of no interest: `pieces` of it are received, and the connection closed if there are more. */
  discard(pieces = 0): void {
    const arrived = this.#waiting.length;
    this.#waiting = [];
    if (arrived > pieces || (pieces === 0 && !this.#isComplete)) this.#stop(undefined);
    else this.#droppedPieces = pieces - arrived;
  }

  #stop(failure: { readonly error: unknown } | undefined): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#isComplete || this.#failure !== undefined) return;
    this.#failure = failure;
    if (failure === undefined) this.#isComplete = true;
    else this.#rejectHead(failure.error);
    this.#wake?.();
    this.#controller?.abort(new GuardedFetchError("unreachable"));
  }

  #fail(error: unknown): void {
    if (this.#isComplete || this.#failure !== undefined) return;
    this.#failure = { error };
    this.#rejectHead(error);
    this.#wake?.();
  }

  #take(): IteratorResult<Uint8Array, undefined> {
    this.#wake = undefined;
    const waiting = this.#waiting;
    if (waiting.length > 0) {
      this.#waiting = [];
      this.#waitingBytes = 0;
      if (!this.#isComplete) this.#controller?.resume();
      return { done: false, value: waiting.length === 1 ? (waiting[0] as Buffer) : Buffer.concat(waiting) };
    }
    if (this.#failure !== undefined) throw this.#failure.error;
    return { done: true, value: undefined };
  }
}

function toRequestError(error: unknown): GuardedFetchError {
  if (error instanceof GuardedFetchError) return error;
  // Without its cause, which quotes what was received: the banner of some service inside the network.
  if (error instanceof Error && PARSER_ERRORS.has(error.name)) return new GuardedFetchError("bad-response");
  return new GuardedFetchError("unreachable", { cause: error });
}

const PARSER_ERRORS = new Set(["HTTPParserError", "HeadersOverflowError"]);
