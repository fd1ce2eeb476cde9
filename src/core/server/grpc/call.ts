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

/** Time for a refused caller to end its request. */
const UNADMITTED_LINGER_MS = 1_000;

/** One call on its HTTP/2 stream: headers, messages in order, and a status. */
export class Call {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection;
  readonly headers: IncomingHttpHeaders;
  #caller: Caller | undefined;
  readonly #rawHeaders: readonly string[];
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #trailers: OutgoingHttpHeaders = OK_TRAILERS;
  #onCancelled: (() => void) | undefined;
  #isOver = false;
  /** The whole message has arrived; a call that ends earlier has cost the caller little. */
  isReceived = false;
  #admission: Promise<void> | undefined;
  #metadata: RpcRequest["metadata"] | undefined;

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
    // Errors are handled through the stream's close; without a listener they would end the process.
    stream.on("error", ignoreError);
    stream.on("aborted", this.#onAborted);
    // The caller may have cancelled before the call was received.
    if (stream.closed || stream.destroyed) this.#finish(RESET_COST);
  }

  /** The status is decided, or the caller has cancelled: nothing more can be sent. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Called once if the call ends early, by its deadline or because the caller cancels. */
  set onCancelled(listener: (() => void) | undefined) {
    this.#onCancelled = listener;
  }

  /** The caller, once admitted. */
  get caller(): Caller | undefined {
    return this.#caller;
  }

  admit(caller: Caller): void {
    this.#caller = caller;
    if (caller.authenticated) this.connection.recognise();
  }

  /** Settles when the caller is checked, where that takes a while; rejects for a caller that is refused. */
  get admission(): Promise<void> | undefined {
    return this.#admission;
  }

  awaitAdmission(caller: Promise<Caller>): Promise<void> {
    this.#admission = caller.then((known) => this.admit(known));
    this.connection.awaitCheck(this.#admission);
    return this.#admission;
  }

  get metadata(): RpcRequest["metadata"] {
    this.#metadata ??= decodeMetadata(this.headers, this.#rawHeaders, this.#log);
    return this.#metadata;
  }

  get remoteAddress(): string | undefined {
    return this.connection.callerAddress(this.headers["x-forwarded-for"]);
  }

  /** Returns false if the timeout header is invalid; the call has then failed. */
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

  /** Sends the response headers. */
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

  /** Calls back when the messages are flushed. Returns false if the caller does not read earlier messages. */
  write(messages: readonly Uint8Array[], taken?: (error?: Error | null) => void): boolean {
    return !this.#isOver && this.stream.write(encodeFrames(messages), taken);
  }

  /** Ends the call with status OK. */
  end(): void {
    if (this.#finish()) this.stream.end();
  }

  /**
   * Sends the one message of a unary call and ends it. Large messages are sent in chunks, so that progress is
   * observable.
   */
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

  /** Answers a request that is not a gRPC call. */
  refuse(headers: OutgoingHttpHeaders): void {
    if (this.#finish()) this.#sendOnly(headers);
  }

  #sendOnly(headers: OutgoingHttpHeaders): void {
    this.stream.respond(headers, WITHOUT_MORE);
    // Discards the rest of the request. A reset would avoid it, but Node clients have been seen to spin forever on a
    // reset that crosses their own.
    this.stream.resume();
    if (this.#caller === undefined) this.#closeSoon();
  }

  /** A stream costs much, so a caller that was not admitted cannot leave it open. */
  #closeSoon(): void {
    const timer = setTimeout(() => this.stream.close(constants.NGHTTP2_NO_ERROR), UNADMITTED_LINGER_MS);
    timer.unref();
    this.stream.once("close", () => clearTimeout(timer));
  }

  /** Fails the call without waiting for the rest of the request. */
  failAndClose(status: RpcStatus): void {
    const hasBegun = this.stream.headersSent;
    const close = () => this.stream.close(constants.NGHTTP2_NO_ERROR);
    this.fail(status);
    // If the response has begun, the status comes last, and an immediate reset would overtake it.
    if (hasBegun) this.stream.once("wantTrailers", () => setImmediate(close));
    else close();
  }

  /** Fails with the status of the error, or with INTERNAL for an unexpected error, whose details are not sent. */
  failWith(error: unknown): void {
    if (error instanceof RpcStatusError) {
      this.fail(error.status);
      return;
    }
    this.#log.error({ err: error }, "A call could not be answered.");
    this.fail({ code: RPC_CODES.INTERNAL, message: "The server failed to answer." });
  }

  /** Ends the call early and notifies `onCancelled`. */
  cancel(status: RpcStatus): void {
    this.fail(status);
    this.#notifyCancelled();
  }

  /** Ends a call whose reader takes nothing. A status would be queued behind the unread data. */
  reset(): void {
    this.#finish();
    this.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#notifyCancelled();
  }

  /** Returns false if the call was over already. */
  #finish(cost = CALL_COST): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    if (this.#caller === undefined || !this.isReceived) this.connection.countUnadmitted(cost);
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    return !this.stream.destroyed && !this.stream.closed;
  }

  #notifyCancelled(): void {
    const listener = this.#onCancelled;
    this.#onCancelled = undefined;
    listener?.();
  }

  readonly #onWantTrailers = (): void => this.stream.sendTrailers(this.#trailers);

  readonly #onAborted = (): void => {
    this.#finish(RESET_COST);
    this.#notifyCancelled();
  };
}

function ignoreError(): void {}
