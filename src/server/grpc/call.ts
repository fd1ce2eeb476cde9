import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from "node:http2";
import type { Caller } from "../../model/caller.ts";
import type { Log } from "../../model/ports.ts";
import { RPC_CODES, type RpcMetadata, type RpcRequest, type RpcStatus, RpcStatusError } from "../../wire/rpc.ts";
import { CALL_COST, type Connection, RESET_COST } from "./connection.ts";
import { decodeMetadata, encodeMetadata, parseTimeout, statusHeaders } from "./headers.ts";
import { ACCEPTED_ENCODINGS, encodeFrame, encodeFrames, encodePrefix } from "./message-framing.ts";

const CHUNK_BYTES = 64 * 1024;
const CONTENT_TYPE = "application/grpc+proto";
const OK_TRAILERS: OutgoingHttpHeaders = Object.freeze({ "grpc-status": "0" });
const WITH_TRAILERS: ServerStreamResponseOptions = Object.freeze({ waitForTrailers: true, sendDate: false });
const WITHOUT_MORE: ServerStreamResponseOptions = Object.freeze({ endStream: true, sendDate: false });
const DEADLINE_EXCEEDED: RpcStatus = { code: RPC_CODES.DEADLINE_EXCEEDED, message: "Deadline exceeded" };

/** One call on its HTTP/2 stream: headers, messages and a status, each sent at most once or in order. */
export class Call {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection;
  readonly headers: IncomingHttpHeaders;
  #caller: Caller | undefined;
  readonly #rawHeaders: readonly string[];
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #trailers: OutgoingHttpHeaders = OK_TRAILERS;
  #left: (() => void) | undefined;
  #isOver = false;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    connection: Connection,
    log: Log,
  ) {
    this.stream = stream;
    this.headers = headers;
    this.#rawHeaders = rawHeaders;
    this.connection = connection;
    this.#log = log;
    // What went wrong is seen by the stream's end; unheard, it would end the process.
    stream.on("error", ignoreError);
    stream.on("aborted", this.#onAborted);
    // A caller may have left before its call was seen.
    if (stream.closed || stream.destroyed) this.#finish(RESET_COST);
  }

  /** Its status is decided, or its caller has left: nothing more can be said. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** For whoever works for this call: called once if it ends by itself, by its deadline or because the caller leaves. */
  set onCancelled(left: (() => void) | undefined) {
    this.#left = left;
  }

  /** Who makes it, once that is known. */
  get caller(): Caller | undefined {
    return this.#caller;
  }

  admit(caller: Caller): void {
    this.#caller = caller;
    if (caller.authenticated) this.connection.isKnown = true;
  }

  get metadata(): RpcRequest["metadata"] {
    return decodeMetadata(this.headers, this.#rawHeaders, this.#log);
  }

  /** False if the caller sets a deadline that is none; the call is then answered. */
  startDeadline(): boolean {
    const header = this.headers["grpc-timeout"];
    if (header === undefined) return true;
    try {
      const ms = parseTimeout(String(header));
      if (ms !== undefined) this.#timer = setTimeout(() => this.cancel(DEADLINE_EXCEEDED), ms);
      return true;
    } catch (error) {
      this.failWith(error);
      return false;
    }
  }

  /** Sends what comes before the first message. */
  begin(metadata: RpcMetadata | undefined): void {
    if (this.#isOver) return;
    const headers: OutgoingHttpHeaders = {
      ":status": 200,
      "content-type": CONTENT_TYPE,
      "grpc-accept-encoding": ACCEPTED_ENCODINGS,
    };
    if (metadata !== undefined) encodeMetadata(headers, metadata, this.#log);
    this.stream.on("wantTrailers", this.#onWantTrailers);
    this.stream.respond(headers, WITH_TRAILERS);
  }

  /** Calls back when the messages have left. False if the caller does not take what it was sent before. */
  write(messages: readonly Uint8Array[], taken?: (error?: Error | null) => void): boolean {
    return !this.#isOver && this.stream.write(encodeFrames(messages), taken);
  }

  /** The call went well. */
  end(): void {
    if (this.#finish()) this.stream.end();
  }

  /** The one message of a call, and its end. Piece by piece if it is long, so that it can be seen whether it is taken. */
  answer(message: Uint8Array, metadata: RpcMetadata | undefined, onProgress: () => void): void {
    this.begin(metadata);
    if (!this.#finish()) return;
    if (message.length <= CHUNK_BYTES) this.stream.end(encodeFrame(message));
    else this.#writeFrom(Buffer.from(message.buffer, message.byteOffset, message.byteLength), 0, onProgress);
  }

  #writeFrom(message: Buffer, at: number, onProgress: () => void): void {
    const next = at + CHUNK_BYTES;
    const piece = message.subarray(at, next);
    const bytes = at === 0 ? Buffer.concat([encodePrefix(message), piece]) : piece;
    if (next >= message.length) {
      this.stream.end(bytes);
      return;
    }
    this.stream.write(bytes, (error) => {
      if (error !== undefined && error !== null) return;
      onProgress();
      this.#writeFrom(message, next, onProgress);
    });
  }

  fail(status: RpcStatus): void {
    if (!this.#finish()) return;
    const headers = statusHeaders(status, this.#log);
    if (this.stream.headersSent) {
      this.#trailers = headers;
      this.stream.end();
      return;
    }
    headers[":status"] = 200;
    headers["content-type"] = CONTENT_TYPE;
    this.#sendOnly(headers);
  }

  /** Answers what is no call of gRPC. */
  refuse(headers: OutgoingHttpHeaders): void {
    if (this.#finish()) this.#sendOnly(headers);
  }

  #sendOnly(headers: OutgoingHttpHeaders): void {
    this.stream.respond(headers, WITHOUT_MORE);
    // Whatever the caller still sends is thrown away. A reset would spare it that, but clients made with Node have been
    // seen to spin for ever on one that meets their own.
    this.stream.resume();
  }

  /** Does not wait for the rest of the request any longer. */
  failAndClose(status: RpcStatus): void {
    const hasBegun = this.stream.headersSent;
    const close = () => this.stream.close(constants.NGHTTP2_NO_ERROR);
    this.fail(status);
    // The status of an answer that has begun comes after all else, and a reset at once would overtake it.
    if (hasBegun) this.stream.once("wantTrailers", () => setImmediate(close));
    else close();
  }

  /** By an error that has its status with it, or by one that nobody foresaw and nobody is told. */
  failWith(error: unknown): void {
    if (error instanceof RpcStatusError) {
      this.fail(error.status);
      return;
    }
    this.#log.error({ err: error }, "A call could not be answered.");
    this.fail({ code: RPC_CODES.INTERNAL, message: "The server failed to answer." });
  }

  /** Ends the call in place of whoever works for it. */
  cancel(status: RpcStatus): void {
    this.fail(status);
    this.#tellLeft();
  }

  /** Ends the call although its reader takes nothing. A status would wait behind what was not taken. */
  reset(): void {
    this.#finish();
    this.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** False if it was over already. */
  #finish(cost = CALL_COST): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    if (this.#caller === undefined) this.connection.countUnadmitted(cost);
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    return !this.stream.destroyed && !this.stream.closed;
  }

  #tellLeft(): void {
    const left = this.#left;
    this.#left = undefined;
    left?.();
  }

  readonly #onWantTrailers = (): void => this.stream.sendTrailers(this.#trailers);

  readonly #onAborted = (): void => {
    this.#finish(RESET_COST);
    this.#tellLeft();
  };
}

function ignoreError(): void {}
