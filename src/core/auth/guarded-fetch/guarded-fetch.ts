/** A `fetch` for targets named by others: webhooks, cards, key sets, files, registry peers. */

import { type ConnectionOptions, guardConnections } from "./connect.ts";
import { decodeBody } from "./decode-body.ts";
import { GuardedFetchError } from "./errors.ts";
import { outgoingHeaders } from "./guarded-exchange.ts";
import { IncomingAnswer } from "./incoming-answer.ts";
import { followRedirect, type OutgoingRequest, REDIRECT_STATUSES } from "./target-policy.ts";

export interface GuardedFetchOptions extends ConnectionOptions {
  /** Bytes of an answer after decompression. Default 16 MiB. */
  readonly maxBytes?: number;
  /** For everything from looking up the name to the last byte of the answer. Default 30,000. */
  readonly timeoutMs?: number;
  /** Default: 5; with 0 any redirect is refused. */
  readonly maxRedirects?: number;
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_REDIRECTS = 5;

/** Rejects with a GuardedFetchError, or with the reason of the caller's signal. */
export function createGuardedFetch(options: GuardedFetchOptions = {}): typeof globalThis.fetch {
  const { maxBytes = DEFAULT_MAX_BYTES, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { maxRedirects = DEFAULT_MAX_REDIRECTS } = options;
  const { policy, openAgent } = guardConnections(options, timeoutMs);

  async function send(outgoing: OutgoingRequest, stop: RequestStop): Promise<IncomingAnswer> {
    const { url, method, headers, body = null } = outgoing;
    const agent = await openAgent();
    const answer = stop.begin();
    agent.dispatch({ origin: url.origin, path: url.pathname + url.search, method, headers, body }, answer);
    return answer.head;
  }

  async function follow(first: OutgoingRequest, mode: Request["redirect"], stop: RequestStop): Promise<Response> {
    let outgoing = first;
    for (let hops = 0; ; hops++) {
      const answer = await send(outgoing, stop);
      const location = REDIRECT_STATUSES.has(answer.status) ? answer.headers.get("location") : null;
      if (location === null || mode === "manual") return toResponse(answer, outgoing, hops, stop, maxBytes);
      answer.discard();
      if (mode === "error" || maxRedirects === 0) throw new GuardedFetchError("bad-redirect");
      if (hops === maxRedirects) throw new GuardedFetchError("too-many-redirects");
      outgoing = followRedirect(outgoing, answer.status, location, policy);
    }
  }

  return async (input, init) => {
    const url = policy.check(input instanceof Request ? input.url : input);
    const { signal, ...rest } = init ?? {};
    const request = new Request(input instanceof Request ? input : url, rest);
    const caller = signal ?? (input instanceof Request ? input.signal : undefined);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    const headers = outgoingHeaders(Object.fromEntries(request.headers));
    const stop = createRequestStop(timeoutMs, caller);
    try {
      return await follow({ url, method: request.method, headers, body }, request.redirect, stop);
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
export function createGuardedPost({ timeoutMs, ...options }: Omit<GuardedFetchOptions, "maxBytes" | "maxRedirects">) {
  const { policy, openAgent } = guardConnections(options, timeoutMs);
  return async (
    target: string,
    { body, headers, signal }: { body: string; headers: Readonly<Record<string, string>>; signal: AbortSignal },
  ): Promise<{ readonly status: number; readonly body: null }> => {
    const { origin, pathname, search } = policy.check(target);
    const agent = await openAgent();
    if (signal.aborted) throw signal.reason;
    const answer = new IncomingAnswer();
    const onAbort = () => answer.abort(signal.reason);
    signal.addEventListener("abort", onAbort);
    try {
      agent.dispatch(
        {
          origin,
          path: pathname + search,
          method: "POST",
          headers: { accept: "*/*", "accept-encoding": "identity", ...headers },
          body,
          bodyTimeout: MAX_DISCARDED_PAUSE_MS,
        },
        answer,
      );
      const { status } = await answer.head;
      // A short answer is received to its end, which keeps the connection; an endless one ends with its connection.
      answer.discard(MAX_DISCARDED_PIECES);
      return { status, body: null };
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  };
}

type RequestStop = ReturnType<typeof createRequestStop>;

/** Whatever ends a request early, over all its redirects; the first reason is the one that is reported. */
function createRequestStop(timeoutMs: number, caller: AbortSignal | undefined) {
  let stopped: { readonly reason: unknown } | undefined;
  let current: IncomingAnswer | undefined;
  const stop = (reason: unknown) => {
    release();
    stopped ??= { reason };
    current?.abort(reason);
  };
  const onAbort = () => stop(caller?.reason);
  const onTimeout = () => stop(new GuardedFetchError("timeout"));
  const timer = Number.isFinite(timeoutMs) ? setTimeout(onTimeout, timeoutMs) : undefined;
  const release = () => {
    clearTimeout(timer);
    caller?.removeEventListener("abort", onAbort);
  };
  if (caller?.aborted === true) onAbort();
  else caller?.addEventListener("abort", onAbort, { once: true });
  return {
    /** The answer to the next request. Throws if there must not be one any more. */
    begin(): IncomingAnswer {
      if (stopped !== undefined) throw stopped.reason;
      current = new IncomingAnswer();
      return current;
    },
    release,
  };
}

/** Statuses whose answers have no body, RFC 9110 §15. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

function toResponse(
  answer: IncomingAnswer,
  { method, url }: OutgoingRequest,
  hops: number,
  stop: RequestStop,
  maxBytes: number,
): Response {
  const { status } = answer;
  const headers = toHeaders(answer);
  const finished = { url: { value: url.href }, redirected: { value: hops > 0 } };
  if (BODILESS_STATUSES.has(status) || method === "HEAD") {
    stop.release();
    return Object.defineProperties(new Response(null, { status, headers }), finished);
  }
  if (Number(headers.get("content-length")) > maxBytes) {
    answer.discard();
    throw new GuardedFetchError("too-large");
  }
  const decoded = toStream(answer, maxBytes, stop);
  if (headers.has("content-encoding")) {
    headers.delete("content-encoding");
    headers.delete("content-length");
  }
  return Object.defineProperties(new Response(decoded, { status, headers }), finished);
}

/** Bytes are counted after decoding, so that a small bomb cannot become a large answer. */
function toStream(answer: IncomingAnswer, maxBytes: number, stop: RequestStop): ReadableStream<Uint8Array> {
  const chunks = decodeBody(answer);
  let size = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) {
            stop.release();
            controller.close();
            return;
          }
          size += value.byteLength;
          if (size > maxBytes) throw new GuardedFetchError("too-large");
          controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
        } catch (error) {
          stop.release();
          answer.discard();
          controller.error(error);
        }
      },
      cancel() {
        stop.release();
        answer.discard();
      },
    },
    // Nothing is read ahead of its reader.
    { highWaterMark: 0 },
  );
}

function toHeaders(answer: IncomingAnswer): Headers {
  try {
    const headers = new Headers();
    for (const [name, value] of answer.headers) headers.append(name, value);
    return headers;
  } catch (cause) {
    answer.discard();
    throw new GuardedFetchError("bad-response", { cause });
  }
}
