/** Where a contestant serves JSON-RPC and, if supported, gRPC. */
export interface Endpoint {
  port: number;
  path: string;
  grpcPort?: number;
}

export interface MessageOptions {
  text?: string;
  taskId?: string;
  contextId?: string;
  configuration?: { historyLength?: number; returnImmediately?: boolean };
}

const counterDigits = "0".repeat(12);

export function rpcRequest(endpoint: Endpoint, method: string, params: unknown): Buffer {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return Buffer.from(
    `POST ${endpoint.path} HTTP/1.1\r\n` +
      `Host: 127.0.0.1:${endpoint.port}\r\n` +
      "Content-Type: application/json\r\n" +
      "A2A-Version: 1.0\r\n" +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/**
 * A message request with a new `messageId` each time, incremented inside the prebuilt bytes so that
 * the client spends no time on building requests.
 */
export class MessageTemplate {
  readonly #bytes: Buffer;
  readonly #lastDigit: number;

  constructor(
    endpoint: Endpoint,
    method: "SendMessage" | "SendStreamingMessage",
    prefix: string,
    options: MessageOptions = {},
  ) {
    const { text = "hello", configuration, ...ids } = options;
    const messageId = `${prefix}-${counterDigits}`;
    this.#bytes = rpcRequest(endpoint, method, {
      message: { messageId, role: "ROLE_USER", parts: [{ text }], ...ids },
      ...(configuration ? { configuration } : {}),
    });
    this.#lastDigit = this.#bytes.indexOf(messageId) + messageId.length - 1;
  }

  /** The returned buffer is reused: call again only after the response has arrived. */
  next(): Buffer {
    const nine = 57;
    const zero = 48;
    let at = this.#lastDigit;
    while (this.#bytes[at] === nine) this.#bytes[at--] = zero;
    this.#bytes[at] = this.#bytes[at]! + 1;
    return this.#bytes;
  }
}
