import { connect, type Socket } from "node:net";
import {
  Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  type Metadata,
  Metadata as MetadataClass,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";
import { afterEach } from "vitest";
import { createGrpcServer, type GrpcEndpoint } from "../node-grpc.ts";
import { type FakeOptions, fakeOptions, SERVICE } from "./fake-serving.ts";
import { RawConnection, type RawConnectionOptions } from "./raw-http2.ts";

const opened: { close(): unknown }[] = [];

/** Closes what a test has opened, in reverse order. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
  });
}

export async function openEndpoint(options: FakeOptions = {}): Promise<GrpcEndpoint> {
  const endpoint = await createGrpcServer(fakeOptions(options));
  opened.push({ close: () => endpoint.close(0) });
  return endpoint;
}

export function clientOf({ port }: GrpcEndpoint): RawClient {
  const client = new RawClient(port);
  opened.push(client);
  return client;
}

export async function openClient(options: FakeOptions = {}): Promise<RawClient> {
  return clientOf(await openEndpoint(options));
}

export function connectionTo({ port }: GrpcEndpoint, options: RawConnectionOptions = {}): RawConnection {
  const connection = new RawConnection(port, options);
  opened.push(connection);
  return connection;
}

/** A promise and the functions that settle it. */
export function signal<T = void>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const FRAME_HEADER = 9;

/** HTTP/2 frame types (RFC 9113, section 6). */
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

/** The headers of a call whose stream stays open. */
export function begunCall(stream: number, method = "Say"): Buffer {
  const literal = (name: Buffer, value: string) =>
    Buffer.concat([name, Buffer.from([value.length]), Buffer.from(value)]);
  // Literals without indexing; 4, 1 and 31 are indexes of the static table of HPACK.
  const path = literal(Buffer.from([4]), `/${SERVICE}/${method}`);
  const authority = literal(Buffer.from([1]), "x");
  const type = literal(Buffer.from([15, 31 - 15]), "application/grpc");
  return frame(FRAME.headers, END_HEADERS, stream, Buffer.concat([Buffer.from([0x83, 0x86]), path, authority, type]));
}

const END_HEADERS = 4;

/** Sends hand-written frames, and collects the types of received ones. */
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

const pass = (bytes: Buffer) => bytes;

interface Answered {
  readonly message: Buffer;
  readonly metadata: Metadata;
}

/** Calls by path, with raw bytes as messages. */
export class RawClient {
  readonly #client: Client;

  constructor(port: number, options: Record<string, unknown> = {}) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.max_receive_message_length": -1,
      ...options,
    });
  }

  say(message: string | Buffer, options: CallOptions = {}): Promise<Answered> {
    return this.unary(`/${SERVICE}/Say`, message, options);
  }

  unary(path: string, message: string | Buffer, options: CallOptions = {}): Promise<Answered> {
    return new Promise((resolve, reject) => {
      let metadata = new MetadataClass();
      const call: ClientUnaryCall = this.#client.makeUnaryRequest(
        path,
        pass,
        pass,
        Buffer.from(message),
        toMetadata(options),
        { ...(options.deadline === undefined ? {} : { deadline: options.deadline }) },
        (error: ServiceError | null, answer?: Buffer) => {
          if (error === null) resolve({ message: answer as Buffer, metadata });
          else reject(error);
        },
      );
      call.on("metadata", (received) => {
        metadata = received;
      });
      options.begun?.(call);
    });
  }

  repeat(message: string | Buffer, options: CallOptions = {}): ClientReadableStream<Buffer> {
    return this.stream(`/${SERVICE}/Repeat`, message, options);
  }

  stream(path: string, message: string | Buffer, options: CallOptions = {}): ClientReadableStream<Buffer> {
    return this.#client.makeServerStreamRequest(path, pass, pass, Buffer.from(message), toMetadata(options), {
      ...(options.deadline === undefined ? {} : { deadline: options.deadline }),
    });
  }

  bidi(path: string) {
    return this.#client.makeBidiStreamRequest(path, pass, pass);
  }

  close(): void {
    this.#client.close();
  }
}

interface CallOptions {
  readonly metadata?: Readonly<Record<string, string | Buffer | readonly string[]>>;
  readonly deadline?: Date;
  readonly begun?: (call: ClientUnaryCall) => void;
}

function toMetadata({ metadata = {} }: CallOptions): Metadata {
  const made = new MetadataClass();
  for (const [name, value] of Object.entries(metadata)) {
    if (typeof value === "string" || Buffer.isBuffer(value)) made.add(name, value);
    else for (const one of value) made.add(name, one);
  }
  return made;
}

/** Reads a stream to its end, successful or not. */
export async function readAll(
  call: ClientReadableStream<Buffer>,
): Promise<{ readonly messages: readonly Buffer[]; readonly status: StatusObject }> {
  const messages: Buffer[] = [];
  call.on("data", (message: Buffer) => messages.push(message));
  const status = await statusOf(call);
  return { messages, status };
}

export function statusOf(call: ClientReadableStream<Buffer>): Promise<StatusObject> {
  return new Promise((resolve) => {
    call.on("error", () => {});
    call.on("status", (status: StatusObject) => resolve(status));
  });
}
