import { EventEmitter, once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isLoopback } from "../../core/wire/loopback.ts";
import { notShown } from "./check.ts";

export interface Notification {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Receives the push notifications of a run. */
export class WebhookReceiver {
  readonly #host: string | undefined;
  readonly #signal: AbortSignal;
  /** The first notification for each key. */
  readonly #received = new Map<string, Notification>();
  /** Emits keys. */
  readonly #events = new EventEmitter();
  /** Interfaces that are tested in parallel share it. */
  #server: Promise<Server> | undefined;

  /** `host` is the name under which the agent reaches this machine; without it nothing can be received. */
  constructor(host: string | undefined, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
  }

  /** A separate URL for each config. */
  async urlFor(key: string): Promise<string> {
    const host = this.#host ?? notShown("the agent cannot reach this machine; set --webhook-host");
    this.#server ??= this.#listen(host);
    const { port } = (await this.#server).address() as AddressInfo;
    return `http://${host}:${port}/${key}`;
  }

  /** Undefined if none is received in time. */
  async waitForNotification(key: string, timeoutMs: number): Promise<Notification | undefined> {
    if (!this.#received.has(key)) {
      const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(timeoutMs)]);
      await once(this.#events, key, { signal }).catch(() => undefined);
    }
    return this.#received.get(key);
  }

  async close(): Promise<void> {
    const server = await this.#server?.catch(() => undefined);
    server?.closeAllConnections();
    server?.close();
  }

  async #listen(host: string): Promise<Server> {
    const server = createServer(async (request, response) => {
      const key = (request.url ?? "/").slice(1);
      const notification = { headers: request.headers, body: await readBody(request) };
      response.writeHead(204).end();
      if (!this.#received.has(key)) this.#received.set(key, notification);
      this.#events.emit(key);
    });
    const address = host === "[::1]" ? "::1" : isLoopback(host) ? "127.0.0.1" : undefined;
    server.listen({ port: 0, host: address });
    await once(server, "listening");
    return server;
  }
}

/** What exceeds the limit is dropped. */
async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    }
  } catch {
    // The agent disconnected; what was received is the body.
  }
  return Buffer.concat(chunks).toString("utf8");
}
