import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject, JsonValue } from "../../model/json.ts";

interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonObject;
}

/**
 * `result` responds; `events` streams, then what `more` yields, and ends unless `keepOpen`; `error` fails the request;
 * `silence` never responds.
 */
type Reply =
  | { readonly result: JsonValue }
  | {
      readonly events: readonly JsonValue[];
      readonly more?: AsyncIterable<JsonValue>;
      readonly keepOpen?: boolean;
      readonly cut?: boolean;
    }
  | { readonly error: { readonly code: number; readonly message: string } }
  | { readonly status: number }
  | { readonly silence: true };

export interface TestAgent {
  readonly url: string;
  /** Requests received, except those for the card. */
  readonly received: Received[];
  /** Requests received for the card. */
  readonly cardRequests: Received[];
  /** Replaces members of the card. */
  card: JsonObject;
  /** Replies by method; a list is consumed in order, and its last entry repeats. */
  replies: Record<string, Reply | Reply[]>;
  /** Resolves when a stream is open and has sent its events. */
  streaming: Promise<void>;
  close(): Promise<void>;
}

/** A minimal A2A 1.0 agent over JSON-RPC, written by hand so that the CLI is not tested against Dragoman's own code. */
export async function startTestAgent(): Promise<TestAgent> {
  let notifyStreaming = (): void => {};
  const agent = {
    received: [] as Received[],
    cardRequests: [] as Received[],
    card: {} as JsonObject,
    replies: {} as Record<string, Reply | Reply[]>,
    streaming: new Promise<void>((resolve) => {
      notifyStreaming = resolve;
    }),
  };
  const server = createServer(async (request, response) => {
    const received = await receive(request);
    if (request.method === "GET") {
      agent.cardRequests.push(received);
      if (received.path.startsWith("/files/")) response.end("fetched bytes");
      else if (!received.path.endsWith("agent-card.json")) response.writeHead(404).end();
      else
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(cardOf(request, agent.card)));
      return;
    }
    agent.received.push(received);
    const method = String(received.body.method);
    const planned = agent.replies[method];
    const reply = Array.isArray(planned) ? (planned.length > 1 ? planned.shift() : planned[0]) : planned;
    await answer(
      response,
      received.body.id ?? null,
      reply ?? { error: { code: -32601, message: `No ${method}.` } },
      notifyStreaming,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(agent, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

async function receive(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return {
    method: request.method ?? "",
    path: request.url ?? "",
    headers: request.headers,
    body: text === "" ? {} : (JSON.parse(text) as JsonObject),
  };
}

function cardOf(request: IncomingMessage, changes: JsonObject): JsonObject {
  return {
    name: "Test agent",
    description: "Says what it is told to say.",
    version: "1.2.3",
    supportedInterfaces: [
      { url: `http://${request.headers.host}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "acme" },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "talk", name: "Talk", description: "Talks.", tags: ["test"] }],
    ...changes,
  };
}

async function answer(
  response: ServerResponse,
  id: JsonValue,
  reply: Reply,
  notifyStreaming: () => void,
): Promise<void> {
  const envelope = (content: JsonObject): string => JSON.stringify({ jsonrpc: "2.0", id, ...content });
  if ("silence" in reply) return;
  if ("status" in reply) {
    response.writeHead(reply.status, { "content-type": "text/plain" }).end("no");
    return;
  }
  if (!("events" in reply)) {
    const content: JsonObject = "result" in reply ? { result: reply.result } : { error: reply.error };
    response.writeHead(200, { "content-type": "application/json" }).end(envelope(content));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of reply.events) response.write(`data: ${envelope({ result: event })}\n\n`);
  for await (const event of reply.more ?? []) response.write(`data: ${envelope({ result: event })}\n\n`);
  // Only after the write is flushed: destroying the socket discards what is buffered.
  if (reply.cut === true) response.write(":\n\n", () => response.destroy());
  else if (reply.keepOpen !== true) response.end();
  notifyStreaming();
}

/** A task in 1.0 JSON. */
export function task(state: string, more: JsonObject = {}): JsonObject {
  return { id: "task-1", contextId: "context-1", status: { state: `TASK_STATE_${state}` }, ...more };
}

export function statusUpdate(state: string, text?: string): JsonObject {
  const message = text === undefined ? {} : { message: { messageId: "said-1", role: "ROLE_AGENT", parts: [{ text }] } };
  return {
    statusUpdate: { taskId: "task-1", contextId: "context-1", status: { state: `TASK_STATE_${state}`, ...message } },
  };
}

export function textChunk(text: string, more: JsonObject = {}): JsonObject {
  return {
    artifactUpdate: {
      taskId: "task-1",
      contextId: "context-1",
      artifact: { artifactId: "artifact-1", name: "answer", parts: [{ text }] },
      ...more,
    },
  };
}
