import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { type ArrivingBytes, LARGE_REQUEST_BYTES } from "../arriving-bytes.ts";
import type { Arrivals, Arriving } from "./arrivals.ts";
import type { Call } from "./call.ts";
import { decompress } from "./decompress.ts";
import { MessageReader } from "./message-reader.ts";

export interface RequestLimits {
  readonly maxMessageBytes: number;
  readonly arrivals: Arrivals;
  readonly arriving: ArrivingBytes;
}

/** Gets the message once it is there in full. */
export interface MessageTaker {
  /** Judges the caller of a large message; one that is not let in has been answered then. */
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
      if (!this.#limits.arriving.take(piece.length)) throw tooMuch();
      this.#size += piece.length;
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

  /** It has arrived, or never will. */
  readonly #release = (): void => {
    this.#limits.arriving.release(this.#size);
    this.#size = 0;
  };

  readonly #onEnd = (): void => {
    this.#leave();
    this.#release();
    if (this.#call.isOver) return;
    this.#call.onLeft = undefined;
    const message = this.#message;
    // Not kept for as long as the call takes.
    this.#message = undefined;
    if (message === undefined || !this.#reader.isEmpty) this.#call.failWith(notOne());
    else if (this.#reader.isCompressed) void this.#decompress(message);
    else this.#taker.take(this.#call, message);
  };

  async #decompress(message: Uint8Array): Promise<void> {
    try {
      const encoding = this.#call.headers["grpc-encoding"];
      const bytes = await decompress(message, encoding?.toString(), this.#limits.maxMessageBytes);
      this.#taker.take(this.#call, bytes);
    } catch (error) {
      this.#call.failWith(error);
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
