/** Receives the push notifications of a run. */

import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isLoopback } from "../wire/loopback.ts";
import { notShown } from "./check.ts";

export interface Notification {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;

export class WebhookReceiver {
  readonly #host: string | undefined;
  readonly #signal: AbortSignal;
  #server: Server | undefined;
  #port = 0;
  readonly #arrived = new Map<string, Notification[]>();
  #wake: (() => void)[] = [];

  /** `host` is the name under which the agent reaches this machine; without it nothing can be received. */
  constructor(host: string | undefined, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wakeAll());
  }

  /** A separate URL for each config. */
  async urlFor(key: string): Promise<string> {
    const host = this.#host ?? notShown("the agent cannot reach this machine; --webhook-host says how it could");
    if (this.#server === undefined) await this.#listen(host);
    return `http://${host}:${this.#port}/${key}`;
  }

  /** Resolves with the notifications received for a key, as soon as there are any. */
  async waitForNotifications(key: string, timeoutMs: number): Promise<readonly Notification[]> {
    const until = Date.now() + timeoutMs;
    for (;;) {
      const arrived = this.#arrived.get(key);
      const left = until - Date.now();
      if (arrived !== undefined || left <= 0 || this.#signal.aborted) return arrived ?? [];
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #listen(host: string): Promise<void> {
    const server = createServer((request, response) => {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      request.on("data", (chunk: Uint8Array) => {
        bytes += chunk.byteLength;
        if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
      });
      request.on("end", () => {
        response.writeHead(204).end();
        this.#take((request.url ?? "/").slice(1), {
          headers: request.headers,
          body: Buffer.concat(chunks).toString("utf8"),
        });
      });
    });
    const address = host === "[::1]" ? "::1" : isLoopback(host) ? "127.0.0.1" : undefined;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port: 0, ...(address === undefined ? {} : { host: address }) }, resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  #take(key: string, notification: Notification): void {
    this.#arrived.set(key, [...(this.#arrived.get(key) ?? []), notification]);
    this.#wakeAll();
  }

  #wakeAll(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const one of wake) one();
  }
}
