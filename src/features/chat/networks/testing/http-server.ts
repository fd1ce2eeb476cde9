/** The HTTP side of a simulated vendor: requests in, replies out, on a port that the system chooses. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

export interface SimulatedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly bytes: Buffer;
  /** Undefined if the body is not a JSON object. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

export interface SimulatedReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body: object | Uint8Array;
}

interface SimulatedServer {
  readonly url: string;
  close(): Promise<void>;
}

interface SimulatedServerOptions {
  readonly answer: (request: SimulatedRequest) => SimulatedReply | Promise<SimulatedReply>;
  /** A WebSocket was opened; undefined refuses them all. */
  readonly connect?: (socket: WebSocket, url: URL) => void;
}

export async function startServer({ answer, connect }: SimulatedServerOptions): Promise<SimulatedServer> {
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const url = new URL(incoming.url ?? "/", "http://localhost");
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const { body, headers, status } = await Promise.resolve(
      answer({
        method: incoming.method ?? "GET",
        path: url.pathname,
        query: url.searchParams,
        headers: incoming.headers,
        bytes,
        json: toObject(bytes),
        signal: gone.signal,
      }),
    ).catch((error: unknown) => ({ status: 500, headers: {}, body: { simulator: String(error) } }));
    const isBytes = body instanceof Uint8Array;
    response.writeHead(status ?? 200, {
      "content-type": isBytes ? "application/octet-stream" : "application/json",
      ...headers,
    });
    response.end(isBytes ? body : JSON.stringify(body));
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (connect === undefined) return void socket.destroy();
    sockets.handleUpgrade(request, socket, head, (opened) =>
      connect(opened, new URL(request.url ?? "/", "ws://localhost")),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function toObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
