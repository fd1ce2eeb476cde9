import { type Membership, TransientSet } from "../../model/transient.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { type IncomingByteBudget, LARGE_REQUEST_BYTES } from "../access/byte-budgets.ts";
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
  /** Whether the caller has authenticated, checked before much is read or done; a refused call has been answered. */
  admit(call: Call): Promise<boolean>;
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
  #isScreened = false;
  #hasCredentials = false;

  constructor(call: Call, limits: RequestLimits, handler: MessageHandler) {
    this.#call = call;
    this.#limits = limits;
    this.#handler = handler;
    this.#reader = new MessageReader(limits.maxMessageBytes);
    this.#timeout = limits.arrivals.add(this);
    call.onCancelled = this.#clearTimeout;
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
      if (this.#take(piece.length)) this.#push(piece);
      else if (this.#isScreened) throw tooManyBytes();
      else void this.#authenticate(() => this.#retry(piece));
    } catch (error) {
      this.#call.failWith(error);
    }
  };

  #push(piece: Buffer): void {
    this.#reader.push(piece);
    this.#message = this.#reader.next();
    if (this.#size > LARGE_REQUEST_BYTES && !this.#isScreened) void this.#authenticate();
  }

  /** Retries after authentication: only the share of callers without credentials may be exhausted. */
  #retry(piece: Buffer): void {
    if (!this.#take(piece.length)) throw tooManyBytes();
    this.#push(piece);
  }

  /** Pauses reading until the caller is authenticated. */
  async #authenticate(proceed?: () => void): Promise<void> {
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
    this.#isScreened = true;
    const hasCredentials = await this.#handler.admit(this.#call);
    if (hasCredentials) this.#limits.arriving.recognise(this.#size);
    this.#hasCredentials = hasCredentials;
  }

  #take(bytes: number): boolean {
    if (!this.#limits.arriving.take(bytes, this.#hasCredentials)) return false;
    this.#size += bytes;
    return true;
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
      void this.#decompress(message);
      return;
    }
    this.#release();
    if (this.#call.isOver) return;
    this.#call.onCancelled = undefined;
    if (isOne) this.#handler.handle(this.#call, message);
    else this.#call.failWith(notOneMessage());
  };

  /**
   * A small message can expand to a large one, so only for admitted callers, and only while they wait for the response.
   */
  async #decompress(message: Uint8Array): Promise<void> {
    const left = new AbortController();
    this.#call.onCancelled = () => left.abort();
    try {
      if (!this.#isScreened) await this.#admit();
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
