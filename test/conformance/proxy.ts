/** A server that is right, and what a proxy before it spoils: every check must notice something. */

import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import { createSseParser } from "../../src/core/wire/sse.ts";
import { listen } from "../support/lifecycle.ts";

export interface SeenRequest {
  method: string;
  path: string;
  readonly rawNames: readonly string[];
  headers: Record<string, string>;
  /** The JSON of the body, if it is any. */
  body: unknown;
}

export interface SpoiledAnswer {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

/** What is done to requests on their way in and to answers on their way out. All of it may change its arguments. */
export interface Spoiler {
  /** Returns an answer that is given instead of asking the server, or "silence" for none at all. */
  readonly request?: (request: SeenRequest) => SpoiledAnswer | "silence" | undefined;
  readonly answer?: (answer: SpoiledAnswer, request: SeenRequest) => void;
  /** The events that are sent for one event, by its place in the stream; `END` among them ends it. */
  readonly event?: (event: unknown, at: number, request: SeenRequest, stream: number) => readonly unknown[];
  /** What is posted to a webhook instead of what the server posts; undefined: nothing. */
  readonly deliver?: (call: WebhookCall) => WebhookCall | undefined;
}

interface WebhookCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const END = Symbol("the end of a stream");

export interface SpoilingProxy {
  readonly url: string;
  /** Replaces what is spoiled. */
  spoil(spoiler: Spoiler): void;
  to(upstream: string): void;
  /** The way to webhooks, for the servers. */
  readonly post: (url: string, init: RequestInit) => Promise<Response>;
}

export async function startProxy(): Promise<SpoilingProxy> {
  let spoiler: Spoiler = {};
  let upstream = "";
  let streams = 0;
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch((error: unknown) => {
      outgoing.writeHead(502).end(String(error));
    });
  });
  const port = await listen(server);

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const text = await textOf(incoming);
    const request: SeenRequest = {
      method: incoming.method ?? "GET",
      path: incoming.url ?? "/",
      rawNames: incoming.rawHeaders.filter((_, at) => at % 2 === 0),
      headers: Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)])),
      body: parsed(text),
    };
    const instead = spoiler.request?.(request);
    if (instead === "silence") return;
    if (instead !== undefined) {
      reply(outgoing, instead);
      return;
    }
    const body = request.body === undefined ? text : JSON.stringify(request.body);
    const answer = await ask(upstream, request, body, outgoing);
    if (answer.headers["content-type"] === "text/event-stream") await pipe(answer, outgoing, request);
    else {
      const whole = await textOf(answer);
      const spoiled: SpoiledAnswer = {
        status: answer.statusCode ?? 0,
        headers: plain(answer),
        body: parsed(whole) ?? whole,
      };
      spoiler.answer?.(spoiled, request);
      reply(outgoing, spoiled);
    }
  }

  async function pipe(answer: IncomingMessage, outgoing: ServerResponse, request: SeenRequest): Promise<void> {
    const stream = streams++;
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    let at = 0;
    const parser = createSseParser(({ data }) => {
      const event = JSON.parse(data);
      for (const one of spoiler.event?.(event, at++, request, stream) ?? [event]) {
        if (outgoing.writableEnded) return;
        if (one === END) outgoing.end();
        else outgoing.write(`data: ${JSON.stringify(one)}\n\n`);
      }
    });
    outgoing.on("close", () => answer.destroy());
    try {
      for await (const chunk of answer) parser.push(chunk as Uint8Array);
    } catch {
      // The client has left.
    }
    outgoing.end();
  }

  async function post(url: string, init: RequestInit): Promise<Response> {
    const call = { headers: init.headers as Record<string, string>, body: String(init.body) };
    const spoiled = spoiler.deliver === undefined ? call : spoiler.deliver(call);
    return spoiled === undefined ? new Response(null, { status: 204 }) : fetch(url, { ...init, ...spoiled });
  }

  return {
    url: `http://127.0.0.1:${port}`,
    spoil(next) {
      spoiler = next;
      streams = 0;
    },
    to(url) {
      upstream = url;
    },
    post,
  };
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function plain(answer: IncomingMessage): Record<string, string> {
  const { "content-length": _length, "transfer-encoding": _encoding, ...rest } = answer.headers;
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)]));
}

function reply(outgoing: ServerResponse, { body, headers, status }: SpoiledAnswer): void {
  const text = status === 204 ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  outgoing.writeHead(status, headers).end(text);
}

function ask(upstream: string, request: SeenRequest, body: string, outgoing: ServerResponse): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = { ...request.headers, host: new URL(upstream).host };
    delete headers["content-length"];
    if (body !== "") headers["content-length"] = String(Buffer.byteLength(body));
    const sent = forward(`${upstream}${request.path}`, { method: request.method, headers });
    sent.on("response", resolve);
    sent.on("error", reject);
    outgoing.on("close", () => sent.destroy());
    sent.end(body);
  });
}
