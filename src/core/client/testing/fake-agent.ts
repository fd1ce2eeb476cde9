/** A server for tests that returns valid or invalid responses as a test requires. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Recorded {
  readonly method: string;
  /** Including the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body parsed as JSON-RPC, `{}` for anything else. */
  readonly rpc: { readonly method?: string; readonly params?: Readonly<Record<string, unknown>> };
}

export type Handler = (request: Recorded, response: ServerResponse) => void | Promise<void>;

export interface FakeAgent extends AsyncDisposable {
  readonly url: string;
  readonly requests: Recorded[];
  /** The JSON-RPC methods that were called, in order. */
  methods(): (string | undefined)[];
}

export interface FakeAgentOptions {
  readonly card?: object;
  readonly binding?: string;
  readonly tenant?: string;
  /** Does not serve a card. */
  readonly cardless?: boolean;
}

/** What the cards of older versions have in common. */
export const LEGACY_CARD = {
  name: "Old",
  description: "From another time.",
  version: "1",
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "s", name: "S" }],
};

/** Serves a card; all other requests are passed to the handler. */
export async function startFakeAgent(handler: Handler, options: FakeAgentOptions = {}): Promise<FakeAgent> {
  const requests: Recorded[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const { headers, method = "", url: path = "" } = incoming;
      const request: Recorded = { method, path, headers, body, rpc: body.includes("jsonrpc") ? JSON.parse(body) : {} };
      if (path === "/.well-known/agent-card.json" && options.cardless !== true) {
        response.setHeader("content-type", "application/json").end(JSON.stringify(cardOf(url, options)));
        return;
      }
      requests.push(request);
      void handler(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    methods: () => requests.map(({ rpc }) => rpc.method),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function cardOf(url: string, { binding = "JSONRPC", card, tenant }: FakeAgentOptions = {}): object {
  return {
    name: "Fake",
    description: "For tests.",
    version: "1.0.0",
    supportedInterfaces: [
      {
        url: binding === "JSONRPC" ? `${url}/rpc` : `${url}/rest`,
        protocolBinding: binding,
        protocolVersion: "1.0",
        tenant,
      },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    ...card,
  };
}

export const REPLAY_CARD = {
  capabilities: { streaming: true, extensions: [{ uri: "urn:dragoman:ext:replay:v1" }] },
};

export function task(state = "TASK_STATE_COMPLETED", id = "t1"): object {
  return { id, contextId: "c1", status: { state } };
}

export function statusUpdate(state: string, text?: string): object {
  const message = text === undefined ? undefined : { messageId: `m-${text}`, role: "ROLE_AGENT", parts: [{ text }] };
  return { statusUpdate: { taskId: "t1", contextId: "c1", status: { state, message } } };
}

export function artifactUpdate(text: string): object {
  return {
    artifactUpdate: { taskId: "t1", contextId: "c1", artifact: { artifactId: "a1", parts: [{ text }] }, append: true },
  };
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

export function sendResult(response: ServerResponse, result: unknown): void {
  sendJson(response, { jsonrpc: "2.0", id: 1, result });
}

export function sendRpcError(response: ServerResponse, code: number, reason?: string, status = 200): void {
  const data = reason && [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "a2a-protocol.org" }];
  sendJson(response, { jsonrpc: "2.0", id: 1, error: { code, message: "No.", data } }, status);
}

export function openStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
}

/** A frame of a JSON-RPC stream. */
export function rpcFrame(event: object, id?: number): string {
  return `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: event })}\n\n`;
}

/** A frame of an HTTP+JSON stream. */
export function restFrame(event: object, id?: number): string {
  return `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
}

export async function collect<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}
