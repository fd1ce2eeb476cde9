import { connect, type Socket } from "node:net";

/** Frame types and flags of HTTP/2 (RFC 9113, section 6). */
const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;

const FRAME_HEADER = 9;
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const INITIAL_WINDOW_SIZE = 4;
const STREAM_WINDOW = 1 << 24;
const CONNECTION_WINDOW = 1 << 30;
const NOTHING = Buffer.alloc(0);

interface Waiting {
  readonly pieces: Buffer[];
  readonly resolve: (answer: Buffer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * gRPC calls of one method on one connection. Response headers are not decoded: a response ends with trailers, and the
 * caller checks that its messages are complete, which those of a failed call are not.
 */
export class GrpcSession {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #firstHeaders: Buffer;
  #out: Buffer[] = [];
  #rest: Buffer = NOTHING;
  #nextStream = 1;
  #unacknowledged = 0;
  #inTurn = false;

  private constructor(socket: Socket, port: number, path: string) {
    this.#socket = socket;
    this.#firstHeaders = firstHeaders(port, path);
    socket.setNoDelay(true);
    socket.on("data", (data: Buffer) => this.#read(data));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the connection was closed")));
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(INITIAL_WINDOW_SIZE, 0);
    settings.writeUInt32BE(STREAM_WINDOW, 2);
    socket.write(
      Buffer.concat([Buffer.from(PREFACE), frame(FRAME.settings, 0, 0, settings), windowUpdate(CONNECTION_WINDOW)]),
    );
  }

  static open(port: number, path: string): Promise<GrpcSession> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new GrpcSession(socket, port, path));
      });
    });
  }

  /** Resolves with the length-prefixed messages of the response. */
  call(request: Buffer): Promise<Buffer> {
    const id = this.#nextStream;
    this.#nextStream += 2;
    const headers = id === 1 ? this.#firstHeaders : LATER_HEADERS;
    const bytes = Buffer.allocUnsafe(2 * FRAME_HEADER + headers.length + request.length);
    writeFrame(bytes, 0, FRAME.headers, END_HEADERS, id, headers);
    writeFrame(bytes, FRAME_HEADER + headers.length, FRAME.data, END_STREAM, id, request);
    this.#send(bytes);
    return new Promise((resolve, reject) => this.#waiting.set(id, { pieces: [], resolve, reject }));
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Batches everything that is sent in one turn of the event loop into one write. */
  #send(bytes: Buffer): void {
    this.#out.push(bytes);
    if (this.#inTurn) return;
    this.#inTurn = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#inTurn = false;
    const out = this.#out;
    this.#out = [];
    this.#socket.write(Buffer.concat(out));
  }

  #read(data: Buffer): void {
    const bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEADER) {
      const end = at + FRAME_HEADER + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      this.#take(bytes, at, end);
      at = end;
    }
    this.#rest = at === bytes.length ? NOTHING : bytes.subarray(at);
  }

  #take(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at + 3];
    const flags = bytes[at + 4] ?? 0;
    const id = bytes.readUInt32BE(at + 5);
    const payload = bytes.subarray(at + FRAME_HEADER, end);
    if (type === FRAME.data) {
      this.#waiting.get(id)?.pieces.push(payload);
      this.#acknowledge(payload.length);
    } else if (type === FRAME.ping && (flags & ACK) === 0) this.#send(frame(FRAME.ping, ACK, 0, payload));
    else if (type === FRAME.settings && (flags & ACK) === 0) this.#send(frame(FRAME.settings, ACK, 0, NOTHING));
    else if (type === FRAME.goaway) this.#fail(new Error("the server does not take more calls"));
    else if (type === FRAME.reset) this.#end(id, new Error("a call was reset"));
    if ((type === FRAME.data || type === FRAME.headers) && (flags & END_STREAM) !== 0) this.#end(id);
  }

  /** Updates the flow-control window long before it is exhausted. */
  #acknowledge(length: number): void {
    this.#unacknowledged += length;
    if (this.#unacknowledged < CONNECTION_WINDOW / 4) return;
    this.#send(windowUpdate(this.#unacknowledged));
    this.#unacknowledged = 0;
  }

  #end(id: number, error?: Error): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    const { pieces } = waiting;
    if (error !== undefined) waiting.reject(error);
    else waiting.resolve(pieces.length === 1 ? (pieces[0] ?? NOTHING) : Buffer.concat(pieces));
  }

  #fail(error: Error): void {
    for (const id of [...this.#waiting.keys()]) this.#end(id, error);
  }
}

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER + payload.length);
  writeFrame(bytes, 0, type, flags, id, payload);
  return bytes;
}

function writeFrame(bytes: Buffer, at: number, type: number, flags: number, id: number, payload: Buffer): void {
  bytes.writeUIntBE(payload.length, at, 3);
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes.writeUInt32BE(id, at + 5);
  payload.copy(bytes, at + FRAME_HEADER);
}

function windowUpdate(size: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(size);
  return frame(FRAME.windowUpdate, 0, 0, bytes);
}

/** `:method: POST` and `:scheme: http` in the static table of HPACK (RFC 7541). */
const POST = 0x83;
const HTTP = 0x86;

/** As in ordinary clients, the first call adds its headers to the dynamic table; later calls refer to their index. */
function firstHeaders(port: number, path: string): Buffer {
  const named = [namedBefore(4, path), namedBefore(1, `127.0.0.1:${port}`), namedBefore(31, "application/grpc")];
  return Buffer.concat([Buffer.from([POST, HTTP]), ...named, literal("te", "trailers"), literal("a2a-version", "1.0")]);
}

/** The five headers above, the last of which has index 62. */
const LATER_HEADERS = Buffer.from([POST, HTTP, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]);

/** A literal header with indexing whose name is in the static table. */
function namedBefore(index: number, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40 | index]), text(value)]);
}

function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/** A string literal; must be shorter than 127 bytes. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
}
