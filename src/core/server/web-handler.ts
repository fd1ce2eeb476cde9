import { type FullReply, isStreamReply, MAX_CREDENTIALS_BYTES, type RequestHead } from "../wire/exchange.ts";
import { LARGE_REQUEST_BYTES } from "./access/byte-budgets.ts";
import { checkServeOptions, requirePublicUrl } from "./check-options.ts";
import { createCore } from "./core.ts";
import { statusOfBody } from "./http/body-buffer.ts";
import { pathBelowMount } from "./http/mount-path.ts";
import type { NodeHttpOptions } from "./http/node-http.ts";
import type { ServeOptions } from "./options.ts";

const NO_BODY = Buffer.alloc(0);

export type WebHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * The same server as a web-standard function, for Hono, Next, Bun and Deno. `publicUrl` is required and includes the
 * path it is mounted at. A `Request` does not contain its address, nor does a `Response` show whether it is being read:
 * limits by address and on unread responses are left to the framework's own server.
 */
export async function createHandler(options: ServeOptions & { readonly publicUrl: string }): Promise<WebHandler> {
  await checkServeOptions("createHandler", options);
  const baseUrl = requirePublicUrl("createHandler", options);
  const mount = new URL(baseUrl).pathname.replace(/\/+$/, "");
  const core = await createCore(options, { baseUrl: () => baseUrl, grpc: () => undefined });
  const handle = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const head: RequestHead = {
      method: request.method,
      // A framework may have stripped the mount path already.
      path: pathBelowMount(pathname, mount) ?? pathname,
      query: search.slice(1),
      headers: Object.fromEntries(request.headers),
      remoteAddress: undefined,
    };
    const body = await readBody(request, head, core.http);
    if (!Buffer.isBuffer(body)) return toResponse(body);
    const credentialsBody = body.length <= MAX_CREDENTIALS_BYTES ? body : undefined;
    const reply = await core.http.handle({ ...head, credentialsBody, admit: () => ({ ...head, body }) });
    if (!isStreamReply(reply)) return toResponse(reply, request.method === "HEAD");
    return new Response(toReadable(reply.frames), { status: reply.status, headers: { ...reply.headers } });
  };
  return Object.assign(handle, { close: () => core.close() });
}

/** Reads the body, under the same limits as over Node's HTTP; returns a reply if it is refused. */
async function readBody(
  { body }: Request,
  exchange: RequestHead,
  { arriving, maxBodyBytes, refuse, screen }: NodeHttpOptions,
): Promise<Buffer | FullReply> {
  if (body === null) return NO_BODY;
  const announced = Number(exchange.headers["content-length"] ?? 0);
  const refused = statusOfBody(exchange.headers["content-encoding"], announced, maxBodyBytes);
  if (refused !== undefined) return refuse(refused, exchange);
  const chunks: Uint8Array[] = [];
  let size = 0;
  let hasCredentials: boolean | undefined;
  const recognise = async (): Promise<FullReply | undefined> => {
    const screened = await screen(exchange);
    if ("status" in screened) return screened;
    if (screened.hasCredentials) arriving.recognise(size);
    hasCredentials = screened.hasCredentials;
    return undefined;
  };
  try {
    for await (const chunk of body) {
      if (size + chunk.length > maxBodyBytes) return refuse(413, exchange);
      const isLarge = Math.max(announced, size + chunk.length) > LARGE_REQUEST_BYTES;
      // Nothing is buffered for a caller that is refused. Authenticated callers have a larger share of the budget.
      if (hasCredentials === undefined && (isLarge || size > 0 || !arriving.fits(chunk.length, false))) {
        const refusal = await recognise();
        if (refusal !== undefined) return refusal;
      }
      if (!arriving.take(chunk.length, hasCredentials === true)) return refuse(429, exchange);
      size += chunk.length;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, size);
  } finally {
    arriving.release(size, hasCredentials === true);
  }
}

function toResponse(reply: FullReply, bodyless = false): Response {
  const body =
    bodyless || reply.body === undefined
      ? null
      : typeof reply.body === "string"
        ? reply.body
        : new Uint8Array(reply.body);
  return new Response(body, { status: reply.status, headers: { ...reply.headers } });
}

/** Pulled by the consumer, so a slow one slows the reader of the log and nothing is buffered. */
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
