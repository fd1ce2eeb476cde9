import { connect, constants } from "node:http2";
import { chunkCharacter } from "../contestants/protocol.ts";
import { GrpcSession } from "./grpc-session.ts";
import type { LoadResult } from "./load.ts";

/** Uses a hand-written gRPC client, so that its cost is small compared to the servers. */
export interface GrpcLoad {
  readonly port: number;
  readonly method: "SendMessage" | "SendStreamingMessage";
  readonly text: string;
  readonly sessions: number;
  /** Concurrent calls per session. */
  readonly callsEach: number;
  /** Bytes of streamed text that every answer must carry. */
  readonly textBytes: number;
  /** The agent. Default: the default agent of the server. */
  readonly tenant?: string;
  /** Is given the milliseconds that each call took. */
  readonly latencies?: number[];
}

let serial = 0;

export async function runGrpcLoad(load: GrpcLoad, count: number): Promise<LoadResult> {
  const path = `/lf.a2a.v1.A2AService/${load.method}`;
  await checkStatus(load, path);
  const sessions = await Promise.all(Array.from({ length: load.sessions }, () => GrpcSession.open(load.port, path)));
  const start = performance.now();
  let left = count;
  let frames = 0;
  const work = async (session: GrpcSession) => {
    while (left-- > 0) {
      const sent = performance.now();
      const answer = await session.call(requestBytes(`m-${serial++}`, load));
      load.latencies?.push(performance.now() - sent);
      frames += checked(answer, load);
    }
  };
  try {
    await Promise.all(sessions.flatMap((session) => Array.from({ length: load.callsEach }, () => work(session))));
    return { completed: count, frames, seconds: (performance.now() - start) / 1000 };
  } finally {
    for (const session of sessions) session.close();
  }
}

/** Returns the number of messages; throws unless they carry all the text. */
function checked(answer: Buffer, load: GrpcLoad): number {
  const { messages, text } = countIn(answer);
  if (messages > 0 && text >= load.textBytes) return messages;
  throw new Error(`a call failed: ${messages} messages, ${text} bytes of text`);
}

/** One call with a client that decodes the whole response. */
async function checkStatus(load: GrpcLoad, path: string): Promise<void> {
  const session = connect(`http://127.0.0.1:${load.port}`, { settings: { initialWindowSize: 1 << 24 } });
  try {
    const status = await new Promise<string>((resolve, reject) => {
      session.once("error", reject);
      const stream = session.request({
        [constants.HTTP2_HEADER_METHOD]: "POST",
        [constants.HTTP2_HEADER_PATH]: path,
        [constants.HTTP2_HEADER_CONTENT_TYPE]: "application/grpc",
        [constants.HTTP2_HEADER_TE]: "trailers",
        "a2a-version": "1.0",
      });
      const note = (headers: Record<string, unknown>) => {
        const { "grpc-status": code, "grpc-message": message = "" } = headers;
        if (code !== undefined) resolve(`${code} ${message}`);
      };
      stream.on("response", note);
      stream.on("trailers", note);
      stream.on("error", reject);
      stream.on("close", () => reject(new Error("a call ended without a status")));
      stream.resume();
      stream.end(requestBytes("m-first", load));
    });
    if (!status.startsWith("0 ")) throw new Error(`a call failed: status ${status}`);
  } finally {
    session.destroy();
  }
}

const HEADER_BYTES = 5;
const CHUNK_CODE = chunkCharacter.charCodeAt(0);

function countIn(bytes: Buffer): { messages: number; text: number } {
  let messages = 0;
  for (let at = 0; at + HEADER_BYTES <= bytes.length; at += HEADER_BYTES + bytes.readUInt32BE(at + 1)) messages++;
  let text = 0;
  for (let at = bytes.indexOf(CHUNK_CODE); at >= 0; at = bytes.indexOf(CHUNK_CODE, at + 1)) text++;
  return { messages, text };
}

/** `SendMessageRequest { tenant, message: { message_id, role: ROLE_USER, parts: [{ text }] } }`, framed. */
function requestBytes(messageId: string, { tenant, text }: Pick<GrpcLoad, "tenant" | "text">): Buffer {
  const part = field(1, Buffer.from(text));
  const message = Buffer.concat([field(1, Buffer.from(messageId)), Buffer.from([0x20, 1]), field(5, part)]);
  const named = tenant === undefined ? [] : [field(1, Buffer.from(tenant))];
  const request = Buffer.concat([...named, field(2, message)]);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(request.length, 1);
  return Buffer.concat([header, request]);
}

/** All lengths here are below 128, which is one byte. */
function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);
}
