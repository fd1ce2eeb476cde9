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
  /** Judges the caller of a large or compressed message; one that is refused has been answered then. */
  admit(call: Call): Promise<void>;
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
      this.#take(piece.length);
      this.#reader.push(piece);
      this.#message = this.#reader.next();
      if (this.#size > LARGE_REQUEST_BYTES && !this.#isJudged) void this.#judge();
    } catch (error) {
      this.#call.failWith(error);
    }
  };

  /** No more is read of a large message until its caller has been let in. */
  async #judge(): Promise<void> {
    this.#isJudged = true;
    this.#call.stream.pause();
    await this.#taker.admit(this.#call);
    this.#call.stream.resume();
  }

  readonly #take = (bytes: number): void => {
    if (!this.#limits.arriving.take(bytes)) throw tooMuch();
    this.#size += bytes;
  };

  /** It has arrived, or never will. */
  readonly #release = (): void => {
    this.#limits.arriving.release(this.#size);
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
      if (!this.#isJudged) await this.#taker.admit(this.#call);
      if (this.#call.isOver) return;
      const bytes = await this.#limits.decompressor.decompress(message, {
        encoding: this.#call.headers["grpc-encoding"]?.toString(),
        maxBytes: this.#limits.maxMessageBytes,
        take: this.#take,
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

function tooMuch(): RpcStatusError {
  return new RpcStatusError({
    code: RPC_CODES.RESOURCE_EXHAUSTED,
    message: "Too many large requests are on their way in.",
  });
}

function notOne(): RpcStatusError {
  return new RpcStatusError({ code: RPC_CODES.UNIMPLEMENTED, message: "The request is not one message." });
}
