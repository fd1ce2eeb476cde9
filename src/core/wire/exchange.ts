/** An exchange: one request, answered in full or by a stream. Serving side first, calling side below. */
import type { Signal } from "../model/abort.ts";
import type { Caller } from "../model/caller.ts";
import type { PeerCertificate } from "./tls.ts";

/** A request without its body: all that is known of it before its caller is admitted. */
export interface RequestHead {
  readonly method: string;
  /** Below the base, without the query, still percent-encoded. */
  readonly path: string;
  /** Raw, without the question mark. */
  readonly query: string;
  /** Names are lower-case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly remoteAddress: string | undefined;
  /** Where the caller has shown one. */
  readonly certificate?: PeerCertificate | undefined;
}

/** The request of a caller that was admitted. */
export interface ExchangeRequest extends RequestHead {
  readonly body: Buffer;
}

/**
 * A request as its carrier received it. It hands out its body for an admitted caller only: parsing costs time, which a
 * caller without credentials must not be able to spend.
 */
export interface ReceivedRequest extends RequestHead {
  /** The carrier counts by owner what waits to be read. */
  admit(caller: Caller): ExchangeRequest;
  /** The body, if it has at most `MAX_CREDENTIALS_BYTES`: the credentials of a token request are in its body. */
  readonly credentialsBody: Buffer | undefined;
}

export const MAX_CREDENTIALS_BYTES = 4 * 1024;

export type ExchangeReply = FullReply | StreamReply;

export interface FullReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | undefined;
}

export interface StreamReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Each item is a batch of framed text and becomes one write to the socket. The carrier calls `return` when the caller
   * goes away, also while a `next` is pending: that is how a stream learns of it.
   */
  readonly frames: AsyncIterable<string>;
}

export function isStreamReply(reply: ExchangeReply): reply is StreamReply {
  return "frames" in reply;
}

/** One caller's answer must not be cached for another: caches cannot tell callers apart by the header of an API key. */
export const PRIVATE_NO_STORE = "private, no-store";

const JSON_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  "content-type": "application/json",
  "cache-control": PRIVATE_NO_STORE,
});

/** `json` is text that is already JSON. Header names are lower-case; an extra header replaces the usual one. */
export function jsonReply(
  status: number,
  json: string | Buffer,
  extraHeaders?: Readonly<Record<string, string>>,
): FullReply {
  return {
    status,
    headers: extraHeaders === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...extraHeaders },
    body: json,
  };
}

export interface ExchangeCall {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborting it ends the call at any stage, also while the answer is being read. */
  readonly signal?: Signal | undefined;
  /** Bounds the wait for the headers, and again the reading of a full answer by `text()`; a stream may last. */
  readonly timeoutMs?: number;
}

/** The body is read once: by `text()` or through `chunks`, not both. An answer that is not read must be cancelled. */
export interface ExchangeAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Drops what has not been read; a running iteration of `chunks` ends without an error. */
  cancel(): void;
}

/** Fails with `CarrierError` only; any status is an answer. */
export type Exchanger = (call: ExchangeCall) => Promise<ExchangeAnswer>;

export type CarrierErrorCode = "unreachable" | "timeout" | "aborted" | "too-large" | "broken-stream";

export class CarrierError extends Error {
  override readonly name = "CarrierError";
  readonly code: CarrierErrorCode;

  constructor(code: CarrierErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The connection could not be established. `code` is that of the socket, `""` if unknown. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}
