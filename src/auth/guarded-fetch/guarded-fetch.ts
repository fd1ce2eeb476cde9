/** A `fetch` for targets named by others: webhooks, cards, key sets, files, registry peers. */

import { PassThrough, pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Agent, Dispatcher } from "undici";
import { createGuardedConnector, type GuardedConnectOptions, type Lookup } from "./connect.ts";
import { GuardedFetchError } from "./errors.ts";
import {
  createTargetPolicy,
  followRedirect,
  type OutgoingRequest,
  REDIRECT_STATUSES,
  type TargetPolicyOptions,
} from "./target-policy.ts";

const DECODERS: Readonly<Record<string, () => Transform>> = {
  "": () => new PassThrough(),
  identity: () => new PassThrough(),
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

interface BodyLimits {
  readonly maxBytes: number;
  /** Called once, when the body has ended, broken or been given up. */
  readonly onDone: () => void;
  /** Why the request was stopped on this side, if it was. */
  readonly stopped: () => unknown;
}

/** The decoded body. Bytes are counted after decoding, so that a small bomb cannot become a large answer. */
function decodeBody(raw: Readable, encoding: string, limits: BodyLimits): ReadableStream<Uint8Array> {
  const decoder = DECODERS[encoding.trim().toLowerCase()];
  if (decoder === undefined) {
    raw.on("error", () => {}).destroy();
    limits.onDone();
    throw new GuardedFetchError("bad-response");
  }
  const decoded = pipeline(raw, decoder(), () => limits.onDone());
  const chunks = decoded[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let size = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) {
            controller.close();
            return;
          }
          size += value.byteLength;
          if (size > limits.maxBytes) throw new GuardedFetchError("too-large");
          controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
        } catch (error) {
          decoded.destroy();
          controller.error(limits.stopped() ?? toBodyError(error));
        }
      },
      cancel() {
        decoded.destroy();
      },
    },
    // Nothing is read ahead of its reader.
    { highWaterMark: 0 },
  );
}

function toBodyError(error: unknown): unknown {
  if (error instanceof GuardedFetchError) return error;
  const isFormat =
    error instanceof Error && "code" in error && /^(?:Z_|ERR_BROTLI|ERR__ERROR)/.test(String(error.code));
  return new GuardedFetchError(isFormat ? "bad-response" : "unreachable", { cause: error });
}

export interface GuardedFetchOptions extends TargetPolicyOptions {
  /** Bytes of an answer after decompression. Default 16 MiB. */
  readonly maxBytes?: number;
  /** For everything from looking up the name to the last byte of the answer. Default 30,000. */
  readonly timeoutMs?: number;
  /** Default: 5; with 0 any redirect is refused. */
  readonly maxRedirects?: number;
  /** All addresses of a name. Default: the system's resolver. */
  readonly lookup?: Lookup;
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_REDIRECTS = 5;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECT_MS = 10_000;
/** Connections are kept for the next request to the same place, but not for long: names move. */
const KEEP_ALIVE_MS = 4_000;

/** Rejects with a GuardedFetchError, or with the reason of the caller's signal. */
export function createGuardedFetch(options: GuardedFetchOptions = {}): typeof globalThis.fetch {
  const { maxBytes = DEFAULT_MAX_BYTES, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { maxRedirects = DEFAULT_MAX_REDIRECTS } = options;
  const { policy, openAgent } = guardConnections(options);

  async function send(outgoing: OutgoingRequest, stop: RequestAbort): Promise<Dispatcher.ResponseData> {
    const { url, method, headers, body } = outgoing;
    const agent = await openAgent();
    const answering = agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as Dispatcher.HttpMethod,
      headers,
      signal: stop.signal,
      body: body ?? null,
    });
    try {
      // The library looks at the signal of a request only once there is a connection for it.
      return await Promise.race([answering, stop.stopped]);
    } catch (error) {
      answering.then(discard, () => {});
      throw stop.signal.reason ?? toRequestError(error);
    }
  }

  async function follow(first: OutgoingRequest, mode: Request["redirect"], stop: RequestAbort): Promise<Response> {
    let outgoing = first;
    for (let hops = 0; ; hops++) {
      const answer = await send(outgoing, stop);
      const location = REDIRECT_STATUSES.has(answer.statusCode) ? answer.headers.location : undefined;
      if (location === undefined || mode === "manual") return toResponse(answer, outgoing, hops, stop, maxBytes);
      discard(answer);
      if (mode === "error" || maxRedirects === 0) throw new GuardedFetchError("bad-redirect");
      if (hops === maxRedirects) throw new GuardedFetchError("too-many-redirects");
      outgoing = followRedirect(outgoing, answer.statusCode, String(location), policy);
    }
  }

  return async (input, init) => {
    const url = policy.check(input instanceof Request ? input.url : input);
    const { signal, ...rest } = init ?? {};
    const request = new Request(input instanceof Request ? input : url, rest);
    const caller = signal ?? (input instanceof Request ? input.signal : undefined);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    const outgoing = { url, method: request.method, headers: outgoingHeaders(request.headers), body };
    const stop = createRequestAbort(timeoutMs, caller);
    try {
      return await follow(outgoing, request.redirect, stop);
    } catch (error) {
      stop.release();
      throw error;
    }
  };
}

/** Pieces of an unread answer that are received, each within a second, so that its connection can be used again. */
const MAX_DISCARDED_PIECES = 8;
const MAX_DISCARDED_PAUSE_MS = 1_000;

/**
 * Like a guarded fetch for requests of which only the status matters: several times cheaper, as there are no `Request`,
 * `Response` and streams. Redirects are not followed. Limited in time by the signal only.
 */
export function createGuardedPost(options: Omit<GuardedFetchOptions, "maxBytes" | "maxRedirects">) {
  const { policy, openAgent } = guardConnections(options);
  return async (
    target: string,
    { body, headers, signal }: { body: string; headers: Readonly<Record<string, string>>; signal: AbortSignal },
  ): Promise<{ readonly status: number; readonly body: null }> => {
    const { origin, pathname, search } = policy.check(target);
    const agent = await openAgent();
    try {
      const answer = await agent.request({
        origin,
        path: pathname + search,
        method: "POST",
        headers: { accept: "*/*", "accept-encoding": "identity", ...headers },
        body,
        signal,
        bodyTimeout: MAX_DISCARDED_PAUSE_MS,
      });
      receiveUnread(answer);
      return { status: answer.statusCode, body: null };
    } catch (error) {
      throw signal.aborted ? signal.reason : toRequestError(error);
    }
  };
}

/** A short answer is received to its end, which keeps the connection; an endless one ends with its connection. */
function receiveUnread({ body }: Dispatcher.ResponseData): void {
  let pieces = 0;
  body.on("error", () => {});
  body.on("data", () => {
    if (++pieces > MAX_DISCARDED_PIECES) body.destroy();
  });
}

function guardConnections({ timeoutMs = DEFAULT_TIMEOUT_MS, ...options }: GuardedFetchOptions) {
  const policy = createTargetPolicy(options);
  const connecting = { policy, timeoutMs: Math.min(timeoutMs, MAX_CONNECT_MS), lookup: options.lookup };
  let opening: Promise<Agent> | undefined;
  const openAgent = (): Promise<Agent> => {
    opening ??= createAgent(connecting);
    return opening;
  };
  return { policy, openAgent };
}

/** The library is loaded when it is first needed: many who can fetch never do. */
async function createAgent(options: GuardedConnectOptions): Promise<Agent> {
  const { Agent, buildConnector } = await import("undici");
  return new Agent({
    connect: createGuardedConnector(buildConnector({ timeout: options.timeoutMs }), options),
    // The whole time is bounded here, so that the library's own limits on parts of it would only be in the way.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
}

type RequestAbort = ReturnType<typeof createRequestAbort>;

/** Whatever ends a request early; the first reason is the one that is reported. */
function createRequestAbort(timeoutMs: number, caller: AbortSignal | undefined) {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = (reason: unknown) => {
    release();
    controller.abort(reason);
  };
  const onAbort = () => stop(caller?.reason);
  const onTimeout = () => stop(new GuardedFetchError("timeout"));
  const timer = Number.isFinite(timeoutMs) ? setTimeout(onTimeout, timeoutMs) : undefined;
  const release = () => {
    clearTimeout(timer);
    caller?.removeEventListener("abort", onAbort);
  };
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  stopped.catch(() => {});
  if (caller?.aborted === true) onAbort();
  else caller?.addEventListener("abort", onAbort, { once: true });
  return {
    signal,
    /** Only ever rejects, with the reason. */
    stopped,
    release,
  };
}

/** Headers of the connection are not the caller's to set; compression is not asked for. */
const CONNECTION_HEADERS = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

function outgoingHeaders(headers: Headers): Readonly<Record<string, string>> {
  const kept = [...headers].filter(([name]) => !CONNECTION_HEADERS.has(name));
  return { accept: "*/*", "accept-encoding": "identity", ...Object.fromEntries(kept) };
}

/** Statuses whose answers have no body, RFC 9110 §15. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

function toResponse(
  answer: Dispatcher.ResponseData,
  { method, url }: OutgoingRequest,
  hops: number,
  stop: RequestAbort,
  maxBytes: number,
): Response {
  const { statusCode: status, body } = answer;
  const headers = toHeaders(answer);
  const finished = { url: { value: url.href }, redirected: { value: hops > 0 } };
  if (BODILESS_STATUSES.has(status) || method === "HEAD") {
    body.on("error", () => {}).resume();
    body.once("close", () => stop.release());
    return Object.defineProperties(new Response(null, { status, headers }), finished);
  }
  if (Number(headers.get("content-length")) > maxBytes) {
    discard(answer);
    throw new GuardedFetchError("too-large");
  }
  const decoded = decodeBody(body, headers.get("content-encoding") ?? "", {
    maxBytes,
    onDone: () => stop.release(),
    stopped: () => stop.signal.reason,
  });
  if (headers.has("content-encoding")) {
    headers.delete("content-encoding");
    headers.delete("content-length");
  }
  return Object.defineProperties(new Response(decoded, { status, headers }), finished);
}

function toHeaders(answer: Dispatcher.ResponseData): Headers {
  const headers = new Headers();
  try {
    for (const [name, value = []] of Object.entries(answer.headers)) {
      for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
    }
    return headers;
  } catch (cause) {
    discard(answer);
    throw new GuardedFetchError("bad-response", { cause });
  }
}

/** Closes the connection rather than read on. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on("error", () => {}).destroy();
}

function toRequestError(error: unknown): GuardedFetchError {
  if (error instanceof GuardedFetchError) return error;
  // Without its cause, which quotes what was received: the banner of some service inside the network.
  if (error instanceof Error && PARSER_ERRORS.has(error.name)) return new GuardedFetchError("bad-response");
  return new GuardedFetchError("unreachable", { cause: error });
}

const PARSER_ERRORS = new Set(["HTTPParserError", "HeadersOverflowError"]);
