import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { type ArrivingBytes, LARGE_REQUEST_BYTES } from "../arriving-bytes.ts";
import type { Arrivals, Arriving } from "./arrivals.ts";
import type { Call } from "./call.ts";
import type { Decompressor } from "./decompress.ts";
import { MessageReader } from "./message-reader.ts";

export interface RequestLimits {
  readonly maxMessageBytes: number;
  readonly arrivals: Arrivals;
  readonly arriving: ArrivingBytes;
  readonly decompressor: Decompressor;
}

/** Gets the message once it is there in full. */
export interface MessageTaker {
  /** Whether the caller has shown credentials, asked before much is read or done; one that is refused has been answered. */
  admit(call: Call): Promise<boolean>;
  take(call: Call, message: Uint8Array): void;
}

/** Reads the request of a call that has one message, and ends the call if it has not. Waits for its end in any case. */
export class OneMessage implements Arriving {
  readonly #call: Call;
  readonly #limits: RequestLimits;
  readonly #taker: MessageTaker;
  readonly #reader: MessageReader;
  #message: Uint8Array | undefined;
  #size = 0;
  #isJudged = false;
  #hasCredentials = false;

  constructor(call: Call, limits: RequestLimits, taker: MessageTaker) {
    this.#call = call;
    this.#limits = limits;
    this.#taker = taker;
    this.#reader = new MessageReader(limits.maxMessageBytes);
    limits.arrivals.add(this);
    call.onLeft = this.#leave;
    call.stream.on("data", this.#onData);
    call.stream.on("end", this.#onEnd);
    call.stream.on("close", this.#release);
  }

  giveUp(): void {
    this.#call.hangUp({ code: RPC_CODES.DEADLINE_EXCEEDED, message: "The request did not arrive in time." });
  }

  readonly #onData = (piece: Buffer): void => {
    if (this.#call.isOver) return;
    try {
      if (this.#message !== undefined) throw notOne();
      if (this.#take(piece.length)) this.#keep(piece);
      else if (this.#isJudged) throw tooMuch();
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
    if (!this.#take(piece.length)) throw tooMuch();
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
    this.#call.onLeft = undefined;
    if (isOne) this.#taker.take(this.#call, message);
    else this.#call.failWith(notOne());
  };

  /** Little can become much, so only for callers that are admitted, and only while they wait for the answer. */
  async #decompress(message: Uint8Array): Promise<void> {
    const left = new AbortController();
    this.#call.onLeft = () => left.abort();
    try {
      if (!this.#isJudged) await this.#admit();
      if (this.#call.isOver) return;
      const bytes = await this.#limits.decompressor.decompress(message, {
        encoding: this.#call.headers["grpc-encoding"]?.toString(),
        maxBytes: this.#limits.maxMessageBytes,
        take: (bytes) => {
          if (!this.#take(bytes)) throw tooMuch();
        },
        signal: left.signal,
      });
      if (this.#call.isOver) return;
      this.#call.onLeft = undefined;
      this.#taker.take(this.#call, bytes);
    } catch (error) {
      this.#call.failWith(error);
    } finally {
      this.#release();
    }
  }

  readonly #leave = (): void => this.#limits.arrivals.delete(this);
}

export function tooMuch(): RpcStatusError {
  return new RpcStatusError({
    code: RPC_CODES.RESOURCE_EXHAUSTED,
    message: "Too many large requests are on their way in.",
  });
}

function notOne(): RpcStatusError {
  return new RpcStatusError({ code: RPC_CODES.UNIMPLEMENTED, message: "The request is not one message." });
}
