/** A webhook in this process: keeps what it is sent and answers as the test wants. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { listen } from "../support/lifecycle.ts";

export interface Arrival {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Number of the event in its task's log. */
  readonly number: number;
}

/** Headers to answer with, or `cut`: the connection breaks without an answer. */
export type Reply = number | { readonly status: number; readonly headers: Record<string, string> } | "cut" | "silence";

export class Receiver {
  readonly arrivals: Arrival[] = [];
  /** Those that were answered with a success. */
  readonly taken: Arrival[] = [];
  reply: (arrival: Arrival) => Reply = () => 204;
  readonly #server: Server;
  #waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of request) chunks.push(chunk as Buffer);
      } catch {
        // The sender died in the middle of it.
        return;
      }
      const { method = "", url: path = "", headers } = request;
      const body = Buffer.concat(chunks).toString("utf8");
      const arrival = { path, method, headers, body, number: Number(headers["x-dragoman-event"]) };
      this.arrivals.push(arrival);
      const reply = this.reply(arrival);
      if (reply === "cut") response.destroy();
      else if (reply !== "silence") {
        const { status, headers: more } = typeof reply === "number" ? { status: reply, headers: {} } : reply;
        if (status < 300) this.taken.push(arrival);
        response.writeHead(status, more).end();
      }
      const met = this.#waiting.filter(({ isMet }) => isMet());
      this.#waiting = this.#waiting.filter((one) => !met.includes(one));
      for (const { resolve } of met) resolve();
    });
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await listen(receiver.#server);
    return receiver;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** Resolves when the condition is met, which is looked at after every arrival. */
  until(isMet: () => boolean): Promise<void> {
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ isMet, resolve });
    });
  }

  /** Resolves with what has been taken at a path, once that are so many. */
  async takenAt(path: string, count: number): Promise<readonly Arrival[]> {
    const found = () => this.taken.filter((arrival) => arrival.path === path);
    await this.until(() => found().length >= count);
    return found();
  }
}
