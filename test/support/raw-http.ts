/** Requests as bytes over a real socket, and what came back, unread and unjudged. */
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  Agent as KeepAlive,
  request,
} from "node:http";

export interface RawRequest {
  readonly method?: string;
  /** Appended to the base as it is; already percent-encoded. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Send the body without announcing its length. */
  readonly chunked?: boolean;
}

export class RawReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;

  constructor({ status, headers }: OpenReply, body: Buffer) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  get text(): string {
    return this.body.toString("utf8");
  }

  get json(): ReturnType<typeof JSON.parse> {
    return JSON.parse(this.text);
  }
}

export interface OpenReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly response: IncomingMessage;
  /** Cuts the connection. */
  hangUp(): void;
}

/** Connections for requests that are answered in full. */
export const sharedConnections = new KeepAlive({ keepAlive: true, maxSockets: 128 });

/** The answer as soon as its headers are there. Streams get a connection of their own. */
export function openRequest(base: string, raw: RawRequest, agent: KeepAlive | false = false): Promise<OpenReply> {
  const url = new URL(base);
  const body = raw.body === undefined ? undefined : Buffer.from(raw.body);
  const length: Record<string, string> =
    body === undefined || raw.chunked === true ? {} : { "content-length": String(body.length) };
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = request({
      host: url.hostname,
      port: url.port,
      agent,
      method: raw.method ?? (body === undefined ? "GET" : "POST"),
      path: (`${url.pathname === "/" ? "" : url.pathname}${raw.path ?? ""}` || "/") + url.search,
      headers: { ...length, ...raw.headers },
    });
    outgoing.once("response", (response) => {
      // A server may answer before it has read everything and then close; the answer counts.
      outgoing.on("error", () => {});
      const { statusCode: status = 0, headers } = response;
      resolve({ status, headers, response, hangUp: () => outgoing.destroy() });
    });
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

/** The whole answer. */
export async function sendRaw(base: string, raw: RawRequest): Promise<RawReply> {
  const reply = await openRequest(base, raw, sharedConnections);
  return new RawReply(reply, await readAll(reply.response));
}

export const A2A_V1 = { "content-type": "application/json", "a2a-version": "1.0" } as const;

export const rpcBody = (method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

/** Calls a method of 1.0 over JSON-RPC. */
export function callRpc(
  url: string,
  method: string,
  params: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<RawReply> {
  return sendRaw(url, { method: "POST", headers: { ...A2A_V1, ...headers }, body: rpcBody(method, params) });
}

export async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
