import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
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

/** One server of the platform: the link and the HTTP services beside it. */
export class PlatformServer {
  readonly #options: PlatformServerOptions;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Pongs are sent by hand so that they can be withheld.
    autoPong: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
  });
  readonly #carriers = new Set<Duplex>();

  constructor(options: PlatformServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.on("upgrade", (request, carrier, head) => this.#upgrade(request, carrier, head));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
  }

  /** HTTP origin, without a path. */
  get origin(): string {
    const { port } = this.#server.address() as AddressInfo;
    const { address } = this.#options;
    return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
  }

  get linkUrl(): string {
    return `${this.origin.replace("http", "ws")}${LINK_PATH}`;
  }

  async close(): Promise<void> {
    for (const carrier of this.#carriers) carrier.destroy();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.origin);
    try {
      for (const route of this.#options.routes) if (await route(request, url, response)) return;
      response.writeHead(404).end();
    } catch {
      // The client disconnected before its request was complete.
      response.destroy();
    }
  }

  #upgrade(request: IncomingMessage, carrier: Duplex, head: Buffer): void {
    carrier.on("error", () => {});
    const admission = this.#admit(request);
    if ("status" in admission) {
      refuseUpgrade(carrier, admission.status);
      return;
    }
    this.#carriers.add(carrier);
    carrier.once("close", () => this.#carriers.delete(carrier));
    this.#sockets.handleUpgrade(request, carrier, head, (webSocket) =>
      this.#options.onAgent(admission.agent, { webSocket, carrier }),
    );
  }

  #admit(request: IncomingMessage): { readonly status: number } | { readonly agent: RegisteredAgent } {
    if (new URL(request.url ?? "/", this.origin).pathname !== LINK_PATH) return { status: 404 };
    const status = this.#options.refusalStatus();
    if (status !== undefined) return { status };
    const admission = this.#options.authenticate(request.headers);
    if ("status" in admission) this.#options.report("upgrade-refused", `${admission.status}: ${admission.reason}`);
    return admission;
  }
}

function refuseUpgrade(carrier: Duplex, status: number): void {
  carrier.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
