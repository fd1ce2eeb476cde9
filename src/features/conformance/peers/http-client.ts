import { createFetchExchanger } from "../../../core/wire/fetch-exchange.ts";
import { readSseEvents } from "../../../core/wire/sse.ts";
import type { ExchangeLog } from "../exchange-log.ts";
import { FrameQueue, toPeerError } from "./frame-queue.ts";
import type { CallLimits, Frame, OpenStream } from "./peer.ts";

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface FullResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  /** Without parameters, in lower case. */
  readonly contentType: string;
  readonly text: string;
}

type ReadFrame = (data: string, event: string, status: number) => Frame;

export interface HttpClient {
  exchange(request: HttpRequest): Promise<FullResponse>;
  /** Events are read by `read`; one that cannot be read ends the stream. */
  open(request: HttpRequest, read: ReadFrame): Promise<FullResponse | OpenStream>;
}

/** Header names are sent in the case in which they are written, and a redirect is an answer like any other. */
export function createHttpClient(
  log: ExchangeLog,
  limits: CallLimits,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): HttpClient {
  const exchanger = createFetchExchanger((url, init) => fetch(url, { ...init, redirect: "manual" }));

  async function open(request: HttpRequest, read?: ReadFrame): Promise<FullResponse | OpenStream> {
    const { body = "", headers, method, url } = request;
    const exchange = log.recordRequest(`${method} ${url.href}`, headers, body);
    try {
      const call = { method, url: url.href, headers, body: request.body, ...limits };
      const answer = await exchanger(call);
      const { status } = answer;
      log.recordResponse(exchange, String(status), answer.headers);
      const contentType = answer.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
      if (read === undefined || contentType !== "text/event-stream") {
        const text = await answer.text();
        log.appendBody(exchange, text);
        return { status, headers: answer.headers, contentType, text };
      }
      const chunks = logChunks(answer.chunks, (text) => log.appendBody(exchange, text));
      const frames = new FrameQueue(
        readFrames(chunks, (data, event) => read(data, event, status)),
        limits,
        () => answer.cancel(),
      );
      return { ok: "stream", frames };
    } catch (error) {
      const failure = toPeerError(error, limits, `${method} ${log.redact(url.pathname)}: `);
      log.recordResponse(exchange, failure.message);
      throw failure;
    }
  }

  return { open, exchange: async (request) => (await open(request)) as FullResponse };
}

async function* logChunks(chunks: AsyncIterable<Uint8Array>, onText: (text: string) => void) {
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    onText(decoder.decode(chunk, { stream: true }));
    yield chunk;
  }
}

async function* readFrames(chunks: AsyncIterable<Uint8Array>, read: (data: string, event: string) => Frame) {
  for await (const events of readSseEvents(chunks)) {
    for (const { data, event } of events) yield read(data, event);
  }
}
