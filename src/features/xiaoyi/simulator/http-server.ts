import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { AuthenticationResult, RegisteredAgent } from "./authentication.ts";
import type { AgentSocket } from "./link/connection.ts";
import type { Report } from "./violations.ts";

/** Resolves with false if the request is not for this route. */
export type Route = (request: IncomingMessage, url: URL, response: ServerResponse) => Promise<boolean>;

const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** Undefined if the body is too large. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function replyJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const LINK_PATH = "/openclaw/v1/ws/link";

/** Larger than any frame the platform could expect. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

interface PlatformServerOptions {
  readonly address: string;
  readonly port: number;
  readonly routes: readonly Route[];
  readonly report: Report;
  readonly authenticate: (headers: IncomingMessage["headers"]) => AuthenticationResult;
  /** Status with which every upgrade is refused; undefined to accept them. */
  readonly refusalStatus: () => number | undefined;
  readonly onAgent: (agent: RegisteredAgent, socket: AgentSocket) => void;
}

export type PlatformServer = ReturnType<typeof createPlatformServer>;

/** One server of the platform: the link and the HTTP services beside it. */
export function createPlatformServer(options: PlatformServerOptions) {
  const { address, authenticate, onAgent, refusalStatus, report, routes } = options;
  const streams = new Set<Duplex>();
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Pongs are sent by hand so that they can be withheld.
    autoPong: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
  });
  const server = createServer((request, response) => void answer(request, response));

  /** Without a path. */
  const origin = (): string => {
    const { port } = server.address() as AddressInfo;
    return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", origin());
    try {
      for (const route of routes) if (await route(request, url, response)) return;
      response.writeHead(404).end();
    } catch {
      // The client disconnected before its request was complete.
      response.destroy();
    }
  }

  function admit(request: IncomingMessage): { readonly status: number } | { readonly agent: RegisteredAgent } {
    if (new URL(request.url ?? "/", origin()).pathname !== LINK_PATH) return { status: 404 };
    const status = refusalStatus();
    if (status !== undefined) return { status };
    const admission = authenticate(request.headers);
    if ("status" in admission) report("upgrade-refused", `${admission.status}: ${admission.reason}`);
    return admission;
  }

  server.on("upgrade", (request, stream, head) => {
    stream.on("error", () => {});
    const admission = admit(request);
    if ("status" in admission) {
      refuseUpgrade(stream, admission.status);
      return;
    }
    streams.add(stream);
    stream.once("close", () => streams.delete(stream));
    sockets.handleUpgrade(request, stream, head, (webSocket) => onAgent(admission.agent, { webSocket, stream }));
  });

  return {
    origin,
    linkUrl: () => `${origin().replace("http", "ws")}${LINK_PATH}`,
    async listen(): Promise<void> {
      server.listen(options.port, address);
      await once(server, "listening");
    },
    async close(): Promise<void> {
      for (const stream of streams) stream.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function refuseUpgrade(stream: Duplex, status: number): void {
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
