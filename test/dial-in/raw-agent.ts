/**
 * An agent that dials `/openclaw/v1/ws/link`, written from what is known of the protocol and with nothing of the
 * product in it.
 */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { type RawData, WebSocket } from "ws";

export interface Credentials {
  readonly agentId: string;
  readonly ak: string;
  readonly sk: string;
}

export interface PlatformRequest {
  readonly jsonrpc: string;
  readonly id: string;
  readonly method: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly conversationId: string;
  readonly params: {
    readonly id: string;
    readonly sessionId: string;
    readonly message: {
      readonly role: string;
      readonly parts: readonly {
        readonly kind: string;
        readonly text?: string;
        readonly file?: { readonly name?: string; readonly uri?: string; readonly bytes?: string };
      }[];
    };
  };
}

export function signedHeaders({ agentId, ak, sk }: Credentials, now = Date.now()): Record<string, string> {
  const ts = String(now);
  const sign = createHmac("sha256", sk).update(ts).digest("base64");
  return { "x-access-key": ak, "x-sign": sign, "x-ts": ts, "x-agent-id": agentId };
}

export function linkUrl(serverUrl: string): string {
  return `${serverUrl.replace(/^http/, "ws")}/openclaw/v1/ws/link`;
}

/** The status with which a dial was refused; 101 if it was not. */
export async function dialStatus(url: string, headers: Record<string, string>): Promise<number> {
  return (await dialAnswer(url, headers)).status;
}

/** The status and the body with which a dial was refused; 101 and nothing if it was not. */
export async function dialAnswer(
  url: string,
  headers: Record<string, string>,
): Promise<{ readonly status: number; readonly contentType: string | undefined; readonly body: string }> {
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => {});
  return new Promise((resolve) => {
    socket.once("open", () => {
      resolve({ status: 101, contentType: undefined, body: "" });
      socket.terminate();
    });
    socket.once("unexpected-response", (_request, response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, contentType: response.headers["content-type"], body });
      });
    });
  });
}

interface PieceOptions {
  readonly append: boolean;
  readonly final: boolean;
  /** Of the artifact. */
  readonly id: string;
  readonly lastChunk?: boolean;
}

export class RawAgent {
  readonly socket: WebSocket;
  readonly closed: Promise<number>;
  readonly #agentId: string;
  readonly #unread: PlatformRequest[] = [];
  #reader: ((request: PlatformRequest) => void) | undefined;

  private constructor(socket: WebSocket, agentId: string) {
    this.socket = socket;
    this.#agentId = agentId;
    this.closed = new Promise((resolve) => {
      socket.once("close", resolve);
    });
    socket.on("error", () => {});
    socket.on("message", (data: RawData) => {
      const request = JSON.parse(String(data)) as PlatformRequest;
      const reader = this.#reader;
      this.#reader = undefined;
      if (reader === undefined) this.#unread.push(request);
      else reader(request);
    });
  }

  /** Dialled in and introduced. */
  static async dial(
    serverUrl: string,
    credentials: Credentials,
    headers = signedHeaders(credentials),
  ): Promise<RawAgent> {
    const agent = await RawAgent.dialOnly(serverUrl, credentials, headers);
    agent.sendRaw(JSON.stringify({ msgType: "clawd_bot_init", agentId: credentials.agentId }));
    return agent;
  }

  static async dialOnly(
    serverUrl: string,
    credentials: Pick<Credentials, "agentId">,
    headers: Record<string, string>,
  ): Promise<RawAgent> {
    const socket = new WebSocket(linkUrl(serverUrl), { headers });
    const agent = new RawAgent(socket, credentials.agentId);
    await once(socket, "open");
    return agent;
  }

  sendRaw(text: string): void {
    this.socket.send(text);
  }

  heartbeat(): void {
    this.sendRaw(JSON.stringify({ msgType: "heartbeat", agentId: this.#agentId }));
  }

  next(): Promise<PlatformRequest> {
    const request = this.#unread.shift();
    if (request !== undefined) return Promise.resolve(request);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  respond({ id, params, sessionId }: PlatformRequest, result: object, error: object = { code: 0, message: "" }): void {
    const msgDetail = JSON.stringify({ jsonrpc: "2.0", id, result, error });
    const taskId = params.id;
    this.sendRaw(JSON.stringify({ msgType: "agent_response", agentId: this.#agentId, sessionId, taskId, msgDetail }));
  }

  /** One frame of text, every one under a new id as phones want it unless an id is given. */
  text(request: PlatformRequest, text: string, more: Partial<PieceOptions> = {}): void {
    const { append = false, final = false, id = `a-${Math.random()}`, lastChunk = true } = more;
    this.parts(request, [{ kind: "text", text }], { append, final, id, lastChunk });
  }

  parts(request: PlatformRequest, parts: object[], more: PieceOptions): void {
    const { append, final, id, lastChunk = true } = more;
    const artifact = { artifactId: id, parts };
    this.respond(request, {
      taskId: request.params.id,
      kind: "artifact-update",
      append,
      lastChunk,
      final,
      artifact,
    });
  }

  status(request: PlatformRequest, state: string, more: { final?: boolean; text?: string } = {}): void {
    const { final = false, text } = more;
    const message = { role: "agent", parts: [{ kind: "text", text }] };
    const status = text === undefined ? { state } : { state, message };
    this.respond(request, { taskId: request.params.id, kind: "status-update", final, status });
  }

  /** Answers a request to cancel and ends its task. */
  cancelled(request: PlatformRequest, asked: PlatformRequest): void {
    this.respond(asked, { id: asked.params.id, status: { state: "canceled" } });
    this.status(request, "canceled", { final: true });
  }
}
