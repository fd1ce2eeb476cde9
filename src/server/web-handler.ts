import type { ExchangeRequest } from "../wire/exchange.ts";
import { isStreamReply } from "../wire/exchange.ts";
import { checkServeOptions, requirePublicUrl } from "./check-options.ts";
import { createCore } from "./core.ts";
import { pathBelowMount } from "./http/node-http.ts";
import type { ServeOptions } from "./options.ts";

export type WebHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * The same server as a web-standard function, for Hono, Next, Bun and Deno. `publicUrl` is required and includes the
 * path it is mounted at.
 */
export async function createHandler(options: ServeOptions & { readonly publicUrl: string }): Promise<WebHandler> {
  checkServeOptions("createHandler", options);
  const baseUrl = requirePublicUrl("createHandler", options);
  const mount = new URL(baseUrl).pathname.replace(/\/+$/, "");
  const core = await createCore(options, { baseUrl: () => baseUrl, grpc: () => undefined });
  const handle = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const exchange: ExchangeRequest = {
      method: request.method,
      // A framework may have taken the mount path away already.
      path: pathBelowMount(pathname, mount) ?? pathname,
      query: search.slice(1),
      headers: Object.fromEntries(request.headers),
      body: Buffer.alloc(0),
      remoteAddress: undefined,
    };
    const body = await readBody(request, core.http.maxBodyBytes);
    if (body === undefined) return toResponse(core.http.refuse(413, exchange));
    const reply = await core.http.handle({ ...exchange, body });
    if (!isStreamReply(reply)) return toResponse(reply, request.method === "HEAD");
    return new Response(toReadable(reply.frames), { status: reply.status, headers: { ...reply.headers } });
  };
  return Object.assign(handle, { close: () => core.close() });
}

/** Undefined for a body over the limit, of which no more is read than shows that it is. */
async function readBody({ body }: Request, limit: number): Promise<Buffer | undefined> {
  if (body === null) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
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
