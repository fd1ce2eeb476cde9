import { isPromise } from "../../auth/verify/contract.ts";
import { type Membership, TransientSet } from "../../model/transient.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import type { IncomingByteBudget } from "../access/byte-budgets.ts";
import type { Call } from "./call.ts";
import { type Decompressor, MessageReader } from "./message-framing.ts";

/** Something with a timeout. */
export interface TimeoutTarget {
  /** It did not arrive in time. */
  onTimeout(): void;
}

/** A timeout that has not passed. */
export type Timeout = Membership<TimeoutTarget>;

/**
 * Coarse timeouts: an entry expires after one to two times `allowedMs`. Two generations and one timer: an entry costs a
 * place in a set, not a timer of its own.
 */
export class CoarseTimeouts {
  #young = new TransientSet<TimeoutTarget>();
  #old = new TransientSet<TimeoutTarget>();
  readonly #timer: NodeJS.Timeout;

  constructor(allowedMs: number) {
    this.#timer = setInterval(() => this.#age(), allowedMs);
    this.#timer.unref();
  }

  add(one: TimeoutTarget): Timeout {
    return this.#young.add(one);
  }

  delete(timeout: Timeout): void {
    if (!this.#young.delete(timeout)) this.#old.delete(timeout);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #age(): void {
    const late = this.#old;
    this.#old = this.#young;
    this.#young = new TransientSet();
    for (const one of late.values()) one.onTimeout();
  }
}

export interface RequestLimits {
  readonly maxMessageBytes: number;
  readonly arrivals: CoarseTimeouts;
  readonly arriving: IncomingByteBudget;
  readonly decompressor: Decompressor;
}

/** Receives the message once it is complete. */
export interface MessageHandler {
  /** Admits the caller before anything is read; a refused call has been answered. Waits only where a check has to. */
  admit(call: Call): void | Promise<void>;
  handle(call: Call, message: Uint8Array): void;
}

/**
 * Reads the request of a unary call, and fails the call unless it has exactly one message. Always waits for the end of
 * the request.
 */
export class UnaryRequestReader implements TimeoutTarget {
  readonly #call: Call;
  readonly #limits: RequestLimits;
  readonly #handler: MessageHandler;
  readonly #reader: MessageReader;
  readonly #timeout: Timeout;
  #message: Uint8Array | undefined;
  #size = 0;

  constructor(call: Call, limits: RequestLimits, handler: MessageHandler) {
    this.#call = call;
    this.#limits = limits;
    this.#handler = handler;
    this.#reader = new MessageReader(limits.maxMessageBytes);
    this.#timeout = limits.arrivals.add(this);
    call.onCancelled = this.#clearTimeout;
    call.stream.on("close", this.#release);
    const admitted = handler.admit(call);
    // Until then flow control holds back what else the caller sends.
    if (isPromise(admitted)) void admitted.then(this.#read);
    else this.#read();
  }

  readonly #read = (): void => {
    if (this.#call.isOver) {
      this.#clearTimeout();
      return;
    }
    this.#call.stream.on("data", this.#onData);
    this.#call.stream.on("end", this.#onEnd);
  };

  onTimeout(): void {
    this.#call.failAndClose({ code: RPC_CODES.DEADLINE_EXCEEDED, message: "The request did not arrive in time." });
  }

  readonly #onData = (piece: Buffer): void => {
    if (this.#call.isOver) return;
    try {
      if (this.#message !== undefined) throw notOneMessage();
      this.#take(piece.length);
      this.#reader.push(piece);
      this.#message = this.#reader.next();
    } catch (error) {
      this.#call.failWith(error);
    }
  };

  get #hasCredentials(): boolean {
    return this.#call.caller?.authenticated === true;
  }

  #take(bytes: number): void {
    if (!this.#limits.arriving.take(bytes, this.#hasCredentials)) throw tooManyBytes();
    this.#size += bytes;
  }

  /** Releases the bytes of a request that is complete or aborted. */
  readonly #release = (): void => {
    this.#limits.arriving.release(this.#size, this.#hasCredentials);
    this.#size = 0;
  };

  readonly #onEnd = (): void => {
    this.#clearTimeout();
    const message = this.#message;
    // Not retained for the duration of the call.
    this.#message = undefined;
    const isOne = message !== undefined && this.#reader.isEmpty;
    if (isOne && this.#reader.isCompressed && !this.#call.isOver) {
      this.#call.isReceived = true;
      void this.#decompress(message);
      return;
    }
    this.#release();
    if (this.#call.isOver) return;
    this.#call.onCancelled = undefined;
    this.#call.isReceived = isOne;
    if (isOne) this.#handler.handle(this.#call, message);
    else this.#call.failWith(notOneMessage());
  };

  /** A small message can expand to a large one, so only while the caller waits for the response. */
  async #decompress(message: Uint8Array): Promise<void> {
    const left = new AbortController();
    this.#call.onCancelled = () => left.abort();
    try {
      const bytes = await this.#limits.decompressor.decompress(message, {
        encoding: this.#call.headers["grpc-encoding"]?.toString(),
        maxBytes: this.#limits.maxMessageBytes,
        take: (bytes) => this.#take(bytes),
        signal: left.signal,
      });
      if (this.#call.isOver) return;
      this.#call.onCancelled = undefined;
      this.#handler.handle(this.#call, bytes);
    } catch (error) {
      this.#call.failWith(error);
    } finally {
      this.#release();
    }
  }

  readonly #clearTimeout = (): void => this.#limits.arrivals.delete(this.#timeout);
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
