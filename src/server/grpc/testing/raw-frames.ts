import { connect, type Socket } from "node:net";
import { SERVICE } from "./fake-serving.ts";

const FRAME_HEADER = 9;

/** Frame types of HTTP/2 (RFC 9113, section 6). */
export const FRAME = { headers: 1, reset: 3, settings: 4, goaway: 7 } as const;

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(FRAME_HEADER);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** The headers of a call that goes on after them. */
export function begunCall(stream: number, method = "Say"): Buffer {
  const literal = (name: Buffer, value: string) =>
    Buffer.concat([name, Buffer.from([value.length]), Buffer.from(value)]);
  // Not to be remembered; 4, 1 and 31 are numbers of names in the static table of HPACK.
  const path = literal(Buffer.from([4]), `/${SERVICE}/${method}`);
  const authority = literal(Buffer.from([1]), "x");
  const type = literal(Buffer.from([15, 31 - 15]), "application/grpc");
  return frame(FRAME.headers, END_HEADERS, stream, Buffer.concat([Buffer.from([0x83, 0x86]), path, authority, type]));
}

const END_HEADERS = 4;

/** Frames by hand, and the types of those that come back. */
export class RawFrames {
  readonly #socket: Socket;
  readonly seen: number[] = [];
  readonly closed: Promise<void>;
  #rest = Buffer.alloc(0);

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.on("error", () => {});
    this.#socket.on("data", (data: Buffer) => this.#read(data));
    this.closed = new Promise((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0, Buffer.alloc(0))]));
  }

  send(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(data: Buffer): void {
    let bytes = Buffer.concat([this.#rest, data]);
    while (bytes.length >= FRAME_HEADER && bytes.length >= FRAME_HEADER + bytes.readUIntBE(0, 3)) {
      this.seen.push(bytes[3] ?? -1);
      bytes = bytes.subarray(FRAME_HEADER + bytes.readUIntBE(0, 3));
    }
    this.#rest = bytes;
  }
}
