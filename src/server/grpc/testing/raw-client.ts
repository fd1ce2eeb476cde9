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
import { SERVICE } from "./fake-serving.ts";

const pass = (bytes: Buffer) => bytes;

export interface Answered {
  readonly message: Buffer;
  readonly metadata: Metadata;
}

/** Calls by path, with bytes in and bytes out. */
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

export interface CallOptions {
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

/** A stream read to its end, whatever end that is. */
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
