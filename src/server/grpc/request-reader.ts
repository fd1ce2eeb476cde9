import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { type IncomingByteBudget, LARGE_REQUEST_BYTES } from "../access/byte-budgets.ts";
import type { Call } from "./call.ts";
import { type Decompressor, MessageReader } from "./message-framing.ts";

/** Something that is waited for. */
export interface TimeoutTarget {
  /** It did not arrive in time. */
  onTimeout(): void;
}

/**
 * Requests whose message has not come in full. What takes longer than the time allowed, and at most twice as long, is
 * given up. Two generations and one timer: the usual request costs an entry in a set, not a timer of its own.
 */
export class CoarseTimeouts {
  #young = new Set<TimeoutTarget>();
  #old = new Set<TimeoutTarget>();
  readonly #timer: NodeJS.Timeout;

  constructor(allowedMs: number) {
    this.#timer = setInterval(() => this.#age(), allowedMs);
    this.#timer.unref();
  }

  add(one: TimeoutTarget): void {
    this.#young.add(one);
  }

  delete(one: TimeoutTarget): void {
    if (!this.#young.delete(one)) this.#old.delete(one);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #age(): void {
    const late = this.#old;
    this.#old = this.#young;
    this.#young = new Set();
    for (const one of late) one.onTimeout();
  }
}

export interface RequestLimits {
  readonly maxMessageBytes: number;
  readonly arrivals: CoarseTimeouts;
  readonly arriving: IncomingByteBudget;
  readonly decompressor: Decompressor;
}

/** Gets the message once it is there in full. */
export interface MessageHandler {
  /** Whether the caller has shown credentials, asked before much is read or done; one that is refused has been answered. */
  admit(call: Call): Promise<boolean>;
  handle(call: Call, message: Uint8Array): void;
}

/** Reads the request of a call that has one message, and ends the call if it has not. Waits for its end in any case. */
export class UnaryRequestReader implements TimeoutTarget {
  readonly #call: Call;
  readonly #limits: RequestLimits;
  readonly #taker: MessageHandler;
  readonly #reader: MessageReader;
  #message: Uint8Array | undefined;
  #size = 0;
  #isJudged = false;
  #hasCredentials = false;

  constructor(call: Call, limits: RequestLimits, taker: MessageHandler) {
    this.#call = call;
    this.#limits = limits;
    this.#taker = taker;
    this.#reader = new MessageReader(limits.maxMessageBytes);
    limits.arrivals.add(this);
    call.onCancelled = this.#leave;
    call.stream.on("data", this.#onData);
    call.stream.on("end", this.#onEnd);
    call.stream.on("close", this.#release);
  }

  onTimeout(): void {
    this.#call.failAndClose({ code: RPC_CODES.DEADLINE_EXCEEDED, message: "The request did not arrive in time." });
  }

  readonly #onData = (piece: Buffer): void => {
    if (this.#call.isOver) return;
    try {
      if (this.#message !== undefined) throw notOneMessage();
      if (this.#take(piece.length)) this.#keep(piece);
      else if (this.#isJudged) throw tooManyBytes();
      else void this.#judge(() => this.#takeAgain(piece));
    } catch (error) {
      this.#call.failWith(error);
    }
  };

  #keep(piece: Buffer): void {
    this.#reader.push(piece);
    this.#message = this.#reader.next();
    if (this.#size > LARGE_REQUEST_BYTES && !this.#isJudged) void this.#judge();
  }

  /** The share of those without credentials is used up, which is no reason to refuse one that has some. */
  #takeAgain(piece: Buffer): void {
    if (!this.#take(piece.length)) throw tooManyBytes();
    this.#keep(piece);
  }

  /** No more is read until it is known who calls. */
  async #judge(proceed?: () => void): Promise<void> {
    this.#call.stream.pause();
    await this.#admit();
    try {
      if (!this.#call.isOver) proceed?.();
    } catch (error) {
      this.#call.failWith(error);
    }
    this.#call.stream.resume();
  }

  async #admit(): Promise<void> {
    this.#isJudged = true;
    const hasCredentials = await this.#taker.admit(this.#call);
    if (hasCredentials) this.#limits.arriving.recognise(this.#size);
    this.#hasCredentials = hasCredentials;
  }

  #take(bytes: number): boolean {
    if (!this.#limits.arriving.take(bytes, this.#hasCredentials)) return false;
    this.#size += bytes;
    return true;
  }

  /** It has arrived, or never will. */
  readonly #release = (): void => {
    this.#limits.arriving.release(this.#size, this.#hasCredentials);
    this.#size = 0;
  };

  readonly #onEnd = (): void => {
    this.#leave();
    const message = this.#message;
    // Not kept for as long as the call takes.
    this.#message = undefined;
    const isOne = message !== undefined && this.#reader.isEmpty;
    if (isOne && this.#reader.isCompressed && !this.#call.isOver) {
      void this.#decompress(message);
      return;
    }
    this.#release();
    if (this.#call.isOver) return;
    this.#call.onCancelled = undefined;
    if (isOne) this.#taker.handle(this.#call, message);
    else this.#call.failWith(notOneMessage());
  };

  /** Little can become much, so only for callers that are admitted, and only while they wait for the answer. */
  async #decompress(message: Uint8Array): Promise<void> {
    const left = new AbortController();
    this.#call.onCancelled = () => left.abort();
    try {
      if (!this.#isJudged) await this.#admit();
      if (this.#call.isOver) return;
      const bytes = await this.#limits.decompressor.decompress(message, {
        encoding: this.#call.headers["grpc-encoding"]?.toString(),
        maxBytes: this.#limits.maxMessageBytes,
        take: (bytes) => {
          if (!this.#take(bytes)) throw tooManyBytes();
        },
        signal: left.signal,
      });
      if (this.#call.isOver) return;
      this.#call.onCancelled = undefined;
      this.#taker.handle(this.#call, bytes);
    } catch (error) {
      this.#call.failWith(error);
    } finally {
      this.#release();
    }
  }

  readonly #leave = (): void => this.#limits.arrivals.delete(this);
}

export function tooManyBytes(): RpcStatusError {
  return new RpcStatusError({
    code: RPC_CODES.RESOURCE_EXHAUSTED,
    message: "Too many large requests are on their way in.",
  });
}

function notOneMessage(): RpcStatusError {
  return new RpcStatusError({ code: RPC_CODES.UNIMPLEMENTED, message: "The request is not one message." });
}
