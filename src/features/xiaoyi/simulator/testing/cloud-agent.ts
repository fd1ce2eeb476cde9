import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import { readBody } from "../http-server.ts";
import { parseObject } from "../json.ts";

interface CloudRequest {
  readonly headers: IncomingHttpHeaders;
  /** Raw headers, before Node trimmed or joined anything. */
  readonly rawHeaders: readonly string[];
  readonly url: string;
  readonly body: Fields;
}

export type Handler = (request: CloudRequest, response: ServerResponse) => void;

/** An agent with an address, written by hand; the answer to each method can be overridden. */
export class CloudAgent {
  readonly received: CloudRequest[] = [];
  readonly handlers: Record<string, Handler>;
  /** Session ids that were issued and are still valid. */
  readonly sessions = new Set<string>();
  ttl: number | string = "604800";
  readonly #server: Server;
  #issued = 0;

  private constructor() {
    this.handlers = {
      initialize: ({ body }, response) => {
        const agentSessionId = `session-${++this.#issued}`;
        this.sessions.add(agentSessionId);
        const result = { version: "1.0", agentSessionId, agentSessionTtl: this.ttl };
        reply(response, { id: body.id, result, error: { code: 0, message: "" } });
      },
      "notifications/initialized": (_request, response) => void response.writeHead(200).end(),
      "message/stream": ({ body }, response) => stream(response, body, ["Hello", "Hello there"]),
      "tasks/cancel": ({ body }, response) =>
        reply(response, { id: body.id, result: { id: body.id, status: { state: "canceled" } } }),
      clearContext: ({ body }, response) => reply(response, { id: body.id, result: { status: { state: "cleared" } } }),
      authorize: ({ body }, response) =>
        reply(response, { id: body.id, result: { version: "1.0", agentLoginSessionId: "login-1" } }),
      deauthorize: ({ body }, response) => reply(response, { id: body.id, result: { version: "1.0" } }),
    };
    this.#server = createServer(async (request, response) => {
      const body = parseObject((await readBody(request))?.toString("utf8") ?? "") ?? {};
      const received = { headers: request.headers, rawHeaders: request.rawHeaders, url: request.url ?? "", body };
      this.received.push(received);
      const id = request.headers["agent-session-id"];
      if (typeof id === "string" && !this.sessions.has(id)) response.writeHead(401).end();
      else this.handlers[String(body.method)]?.(received, response);
    });
  }

  static async start(): Promise<CloudAgent> {
    const agent = new CloudAgent();
    await new Promise<void>((resolve) => agent.#server.listen(0, "127.0.0.1", resolve));
    return agent;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/agent/message`;
  }

  get methods(): readonly unknown[] {
    return this.received.map(({ body }) => body.method);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

export function reply(response: ServerResponse, content: Fields): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", ...content }));
}

export function frame(response: ServerResponse, body: Fields, result: Fields, more: Fields = {}): void {
  const { id: taskId } = fieldsOf(body.params);
  const content = { jsonrpc: "2.0", id: body.id, result: { taskId, ...result }, ...more };
  response.write(`data: ${JSON.stringify(content)}\n\n`);
}

export const open = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" });

/** Sends a working status, cumulative text updates and the completion. */
function stream(response: ServerResponse, body: Fields, texts: readonly string[]): void {
  open(response);
  frame(response, body, { kind: "status-update", final: false, status: { state: "working" } });
  texts.forEach((text, index) => {
    const artifact = { artifactId: `a${index}`, parts: [{ kind: "text", text }] };
    frame(response, body, { kind: "artifact-update", append: false, lastChunk: true, final: false, artifact });
  });
  frame(response, body, { kind: "status-update", final: true, status: { state: "completed" } });
  response.end();
}
