import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Route } from "../services/web.ts";
import type { Report } from "../violations.ts";
import type { Admission, RegisteredAgent } from "./admission.ts";
import type { AgentSocket } from "./connection.ts";

export const LINK_PATH = "/openclaw/v1/ws/link";

/** More than any frame the platform could mean; a bound all the same. */
const MOST_FRAME_BYTES = 16 * 1024 * 1024;

export interface HostOptions {
  readonly address: string;
  readonly port: number;
  readonly routes: readonly Route[];
  readonly report: Report;
  readonly admit: (headers: IncomingMessage["headers"]) => Admission;
  /** A status that every upgrade is refused with, while there is one. */
  readonly refusesAll: () => number | undefined;
  readonly onAgent: (agent: RegisteredAgent, socket: AgentSocket) => void;
}

/** One server of the platform: the link, and what is reached beside it over HTTP. */
export class Host {
  readonly #options: HostOptions;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Pongs are given by hand, so that they can be withheld.
    autoPong: false,
    perMessageDeflate: false,
    maxPayload: MOST_FRAME_BYTES,
  });
  readonly #carriers = new Set<Duplex>();

  constructor(options: HostOptions) {
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

  /** Of HTTP, without a path. */
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
      // The caller went away in the middle of its request.
      response.destroy();
    }
  }

  #upgrade(request: IncomingMessage, carrier: Duplex, head: Buffer): void {
    carrier.on("error", () => {});
    const admission = this.#admit(request);
    if ("status" in admission) {
      refuse(carrier, admission.status);
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
    const status = this.#options.refusesAll();
    if (status !== undefined) return { status };
    const admission = this.#options.admit(request.headers);
    if ("status" in admission) this.#options.report("upgrade-refused", `${admission.status}: ${admission.why}`);
    return admission;
  }
}

function refuse(carrier: Duplex, status: number): void {
  carrier.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
