import type { ExchangeRequest } from "../wire/exchange.ts";
import { isStreamReply } from "../wire/exchange.ts";
import { createCore, type ServeOptions } from "./core.ts";

export type WebHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * The same server as a web-standard function, for Hono, Next, Bun and Deno. Mount it at the root of an origin, or give
 * `publicUrl` with the path it is mounted at.
 */
export async function createHandler(options: ServeOptions): Promise<WebHandler> {
  const mount = options.publicUrl === undefined ? "" : new URL(options.publicUrl).pathname.replace(/\/+$/, "");
  let origin = options.publicUrl?.replace(/\/+$/, "");
  const core = await createCore(options, { baseUrl: () => origin ?? "", grpc: () => undefined });
  const handle = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    origin ??= url.origin;
    const body = request.body === null ? Buffer.alloc(0) : Buffer.from(await request.arrayBuffer());
    const exchange: ExchangeRequest = {
      method: request.method,
      path: url.pathname.startsWith(mount) ? url.pathname.slice(mount.length) || "/" : url.pathname,
      query: url.search.slice(1),
      headers: Object.fromEntries(request.headers),
      body,
      remoteAddress: undefined,
    };
    if (body.length > core.http.maxBodyBytes) return toResponse(core.http.refuse(413, exchange));
    const reply = await core.http.handle(exchange);
    if (!isStreamReply(reply)) return toResponse(reply, request.method === "HEAD");
    return new Response(toReadable(reply.frames), { status: reply.status, headers: { ...reply.headers } });
  };
  return Object.assign(handle, { close: () => core.close() });
}

function toResponse(
  reply: { status: number; headers: Readonly<Record<string, string>>; body: string | Buffer | undefined },
  bodyless = false,
): Response {
  const body =
    bodyless || reply.body === undefined
      ? null
      : typeof reply.body === "string"
        ? reply.body
        : new Uint8Array(reply.body);
  return new Response(body, { status: reply.status, headers: { ...reply.headers } });
}

/** Pulled by the consumer, so a slow one slows the reader of the log and nothing piles up. */
function toReadable(frames: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = frames[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const step = await iterator.next();
      if (step.done === true) controller.close();
      else controller.enqueue(encoder.encode(step.value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
