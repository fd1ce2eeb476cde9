/** Where a contestant serves JSON-RPC and, if supported, gRPC. */
export interface Endpoint {
  port: number;
  path: string;
  grpcPort?: number;
}

/** A request as it is sent; `body` is encoded as JSON. */
export interface HttpRequest {
  /** Relative to the path of the endpoint. */
  path?: string;
  headers?: Readonly<Record<string, string>>;
  body: unknown;
}

/** Stands in the body of a templated request for an id that is new each time. */
export const uniqueId = "unique-000000-000000000000";

const version = { "A2A-Version": "1.0" };

export function rpc(method: string, params: unknown, headers: Readonly<Record<string, string>> = version): HttpRequest {
  return { headers, body: { jsonrpc: "2.0", id: 1, method, params } };
}

/** `SendMessage` of A2A 1.0, or another method that takes the same. */
export function message(
  text: string,
  more: { configuration?: object; ids?: object; method?: string } = {},
): HttpRequest {
  const { configuration, ids, method = "SendMessage" } = more;
  return rpc(method, {
    message: { messageId: uniqueId, role: "ROLE_USER", parts: [{ text }], ...ids },
    ...(configuration && { configuration }),
  });
}

export function requestBytes(endpoint: Endpoint, { path = "", headers = {}, body }: HttpRequest): Buffer {
  const text = JSON.stringify(body);
  const named = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `POST ${endpoint.path}${path} HTTP/1.1\r\n` +
      `Host: 127.0.0.1:${endpoint.port}\r\n` +
      "Content-Type: application/json\r\n" +
      named.join("") +
      `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

let templates = 0;

/**
 * A request whose ids are new each time, also among all templates of the process. They are counted up inside the prebuilt
 * bytes, so that the client spends no time on building requests.
 */
export class RequestTemplate {
  readonly #bytes: Buffer;
  /** Where the last digits of the ids are. */
  readonly #ends: number[] = [];

  constructor(endpoint: Endpoint, request: HttpRequest) {
    this.#bytes = requestBytes(endpoint, request);
    const first = uniqueId.replace("000000", String(++templates).padStart(6, "0"));
    for (let at = this.#bytes.indexOf(uniqueId); at >= 0; at = this.#bytes.indexOf(uniqueId, at + 1)) {
      this.#bytes.write(first, at);
      this.#ends.push(at + uniqueId.length - 1);
    }
  }

  /** The returned buffer is reused: call again only after the response has arrived. */
  next(): Buffer {
    const nine = 57;
    const zero = 48;
    for (const end of this.#ends) {
      let at = end;
      while (this.#bytes[at] === nine) this.#bytes[at--] = zero;
      this.#bytes[at] = this.#bytes[at]! + 1;
    }
    return this.#bytes;
  }
}
