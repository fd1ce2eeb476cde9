import { type ClientHttp2Session, connect, constants } from "node:http2";
import { chunkCharacter } from "../contestants/protocol.ts";
import type { LoadResult, Until } from "./load.ts";

/** gRPC by hand over `node:http2`: requests are ready-made bytes, so that the client costs little beside the servers. */
export interface GrpcLoad {
  readonly port: number;
  readonly method: "SendMessage" | "SendStreamingMessage";
  readonly text: string;
  readonly sessions: number;
  /** Calls at a time on each session. */
  readonly callsEach: number;
  /** Bytes of streamed text that every answer must carry. */
  readonly textBytes: number;
}

export async function runGrpcLoad(load: GrpcLoad, until: Until): Promise<LoadResult> {
  const sessions = await Promise.all(Array.from({ length: load.sessions }, () => openSession(load.port)));
  const start = performance.now();
  const end = "seconds" in until ? start + until.seconds * 1000 : Infinity;
  let left = "requests" in until ? until.requests : Infinity;
  let completed = 0;
  let frames = 0;
  let serial = 0;
  const work = async (session: ClientHttp2Session) => {
    while (left-- > 0 && performance.now() < end) {
      const came = await callOnce(session, load, serial++);
      frames += came;
      completed++;
    }
  };
  try {
    await Promise.all(sessions.flatMap((session) => Array.from({ length: load.callsEach }, () => work(session))));
    return { completed, frames, seconds: (performance.now() - start) / 1000 };
  } finally {
    for (const session of sessions) session.destroy();
  }
}

function openSession(port: number): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1 << 24 } });
    session.once("error", reject);
    session.once("connect", () => resolve(session));
  });
}

/** Resolves with the number of messages; rejects unless the call succeeded and carried all its text. */
function callOnce(session: ClientHttp2Session, load: GrpcLoad, serial: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: `/lf.a2a.v1.A2AService/${load.method}`,
      [constants.HTTP2_HEADER_CONTENT_TYPE]: "application/grpc",
      [constants.HTTP2_HEADER_TE]: "trailers",
      "a2a-version": "1.0",
    });
    const pieces: Buffer[] = [];
    let status: string | undefined;
    const note = (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] !== undefined) status = `${headers["grpc-status"]} ${headers["grpc-message"] ?? ""}`;
    };
    stream.on("response", note);
    stream.on("trailers", note);
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("error", reject);
    stream.on("close", () => {
      const { messages, text } = countIn(Buffer.concat(pieces));
      if (status?.startsWith("0 ") && messages > 0 && text >= load.textBytes) resolve(messages);
      else reject(new Error(`a call failed: status ${status}, ${messages} messages, ${text} bytes of text`));
    });
    stream.end(requestBytes(`m-${serial}`, load.text));
  });
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

/** `SendMessageRequest { message: { message_id, role: ROLE_USER, parts: [{ text }] } }`, framed. */
function requestBytes(messageId: string, text: string): Buffer {
  const part = field(1, Buffer.from(text));
  const message = Buffer.concat([field(1, Buffer.from(messageId)), Buffer.from([0x20, 1]), field(5, part)]);
  const request = field(2, message);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(request.length, 1);
  return Buffer.concat([header, request]);
}

/** All lengths here are below 128, which is one byte. */
function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);
}
