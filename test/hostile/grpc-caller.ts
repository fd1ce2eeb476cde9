/** Makes hostile calls over HTTP/2 without a gRPC library, which would not send them, and judges what comes back. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { HostileCall } from "./grpc-request.ts";

export interface GrpcReply {
  readonly httpStatus: number;
  /** Undefined where the stream was reset, or where the reader left. */
  readonly code: number | undefined;
  readonly details: string;
  /** The bytes of the first message, if there was one. */
  readonly message: Buffer | undefined;
  readonly resetCode: number;
}

export type Verdict = "done" | "refused" | "left";

/** UNKNOWN, INTERNAL, UNAVAILABLE and DATA_LOSS are what a server says that failed. */
const FAILURES: ReadonlySet<number> = new Set([2, 13, 14, 15]);
const INTERNAL = 13;
const LAST_CODE = 16;

export class HostileCaller {
  readonly #address: string;
  #session: ClientHttp2Session | undefined;

  /** `host:port` */
  constructor(address: string) {
    this.#address = address;
  }

  /** One connection for many calls; another once the server, or a call, has ended it. */
  #connected(): ClientHttp2Session {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(`http://${this.#address}`);
      this.#session.on("error", () => {});
    }
    return this.#session;
  }

  async judged(call: HostileCall): Promise<Verdict> {
    return judge(call, await this.#ask(call));
  }

  #ask({ path, headers, body, by }: HostileCall): Promise<GrpcReply> {
    const stream = this.#connected().request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.on("error", () => {});
    const reply = replyOf(stream);
    if (by === "nobody") {
      // Left once it is on its way; otherwise the server would never learn of it.
      stream.write(body, () => stream.close(8));
    } else stream.end(body);
    return reply;
  }

  close(): void {
    this.#session?.destroy();
  }
}

/** Of a stream that goes on only the first message is waited for. */
function replyOf(stream: ClientHttp2Stream): Promise<GrpcReply> {
  return new Promise((resolve) => {
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    let received = Buffer.alloc(0);
    let message: Buffer | undefined;
    stream.on("response", (given) => {
      headers = given;
    });
    stream.on("trailers", (given) => {
      trailers = given;
    });
    stream.on("data", (chunk: Buffer) => {
      if (message !== undefined) return;
      received = Buffer.concat([received, chunk]);
      if (received.length < 5 || received.length < 5 + received.readUInt32BE(1)) return;
      message = received.subarray(5, 5 + received.readUInt32BE(1));
      // The trailers of a call with one answer come at once, those of a stream perhaps never.
      setImmediate(() => setImmediate(() => stream.close(8)));
    });
    stream.on("close", () => {
      const all = { ...headers, ...trailers };
      const code = all["grpc-status"] === undefined ? undefined : Number(all["grpc-status"]);
      const details = Buffer.from(String(all["grpc-status-details-bin"] ?? ""), "base64").toString("latin1");
      resolve({ httpStatus: Number(headers[":status"] ?? 0), code, details, message, resetCode: stream.rstCode ?? 0 });
    });
  });
}

function judge(call: HostileCall, reply: GrpcReply): Verdict {
  const { httpStatus, code, details, message, resetCode } = reply;
  const blame = (why: string) =>
    new Error(
      `${why}\ncall: ${call.label} ${call.path} ${JSON.stringify(call.headers ?? {}).slice(0, 300)} ${call.body.toString("base64").slice(0, 1_000)}\nanswer: ${httpStatus} ${code} ${resetCode} ${message?.length} ${details}`,
    );
  if (call.by === "nobody") return "left";
  if (message !== undefined) {
    if (code !== undefined && code !== 0) throw blame("A message and an error.");
    return "done";
  }
  if (code === undefined) {
    if (call.by === "dialect") throw blame("No status.");
    // What is no gRPC is answered by HTTP, or not at all.
    if (httpStatus >= 500) throw blame("A status that must not be.");
    return "refused";
  }
  if (httpStatus !== 200 && httpStatus !== 415) throw blame("A status of HTTP that must not be.");
  if (!Number.isInteger(code) || code < 0 || code > LAST_CODE) throw blame("No status.");
  if (FAILURES.has(code) && !(call.broken === true && code === INTERNAL)) throw blame("A status that must not be.");
  if (code === 0) return "done";
  if (call.by === "dialect" && !(details.includes("google.rpc.ErrorInfo") && details.includes("a2a-protocol.org"))) {
    throw blame("No details.");
  }
  return "refused";
}
