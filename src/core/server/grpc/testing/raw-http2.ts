import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import { SERVICE } from "./fake-serving.ts";

export interface RawAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Error code of the RST_STREAM frame; 0 if there was none. */
  readonly resetCode: number;
}

export interface RawConnectionOptions {
  readonly window?: number;
  /** The address to call from. */
  readonly from?: string;
}

/** HTTP/2 without the library, to send what it never would. */
export class RawConnection {
  readonly session: ClientHttp2Session;

  constructor(port: number, { from, window }: RawConnectionOptions = {}) {
    this.session = connect(`http://127.0.0.1:${port}`, {
      ...(window === undefined ? {} : { settings: { initialWindowSize: window } }),
      ...(from === undefined ? {} : { localAddress: from }),
    });
    this.session.on("error", () => {});
  }

  request(method: string, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
    const stream = this.session.request({
      ":method": "POST",
      ":path": `/${SERVICE}/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.on("error", () => {});
    return stream;
  }

  call(method: string, body: Buffer, headers?: Readonly<Record<string, string>>): Promise<RawAnswer> {
    const stream = this.request(method, headers);
    stream.end(body);
    return answerOf(stream);
  }

  close(): void {
    this.session.destroy();
  }
}

export function answerOf(stream: ClientHttp2Stream): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    stream.on("response", (received) => {
      headers = received;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("close", () =>
      resolve({ headers, trailers, body: Buffer.concat(chunks), resetCode: stream.rstCode ?? 0 }),
    );
  });
}

/** A message with its length prefix. */
export function framed(message: string | Buffer, announced = Buffer.byteLength(message)): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(announced, 1);
  return Buffer.concat([head, Buffer.from(message)]);
}
