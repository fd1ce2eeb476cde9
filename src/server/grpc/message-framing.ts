import { addAbortSignal, type Transform } from "node:stream";
import { createGunzip, createInflate, type ZlibOptions } from "node:zlib";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";

/** What callers may compress their messages with. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

const DECOMPRESSORS: ReadonlyMap<string, (options: ZlibOptions) => Transform> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate],
]);

/** Fewer than Node has threads for such work, so that files and names are still looked up meanwhile. */
const MAX_CONCURRENT = 2;
const CHUNK_BYTES = 64 * 1024;

interface DecompressOptions {
  /** What the call's headers name. */
  readonly encoding: string | undefined;
  readonly maxBytes: number;
  /** Called with what came out, as it comes out; throws where that is more than there is room for. */
  readonly take: (bytes: number) => void;
  /** Aborted when the result is no longer of use. */
  readonly signal: AbortSignal;
}

/** Decompresses a few messages at a time; the others wait in turn. */
export class Decompressor {
  #running = 0;
  readonly #waiting = new Set<() => void>();

  /** Throws an RpcStatusError. */
  async decompress(bytes: Uint8Array, options: DecompressOptions): Promise<Buffer> {
    const stream = decompressorFor(options.encoding);
    await this.#turn(options.signal);
    try {
      return await collect(stream(), bytes, options);
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** One that ends hands its place to the next. */
  #turn(signal: AbortSignal): Promise<void> | undefined {
    if (this.#running < MAX_CONCURRENT) {
      this.#running++;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        signal.removeEventListener("abort", leave);
        this.#waiting.delete(settle);
        resolve();
      };
      // Not only when its turn comes: until then it would keep its bytes.
      const leave = (): void => {
        this.#waiting.delete(settle);
        reject(decompressionError());
      };
      this.#waiting.add(settle);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

/** Asks for more only when what came out was counted. */
async function collect(stream: Transform, bytes: Uint8Array, options: DecompressOptions): Promise<Buffer> {
  const { maxBytes, take, signal } = options;
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    addAbortSignal(signal, stream).end(bytes);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw messageTooLarge(maxBytes);
      take(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof RpcStatusError ? error : decompressionError();
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length);
}

function decompressorFor(encoding: string | undefined): () => Transform {
  if (encoding === undefined || encoding === "identity") {
    throw statusError(RPC_CODES.INTERNAL, "A message is marked as compressed, but grpc-encoding is missing.");
  }
  const create = DECOMPRESSORS.get(encoding);
  if (create === undefined) {
    throw statusError(
      RPC_CODES.UNIMPLEMENTED,
      `Messages may be compressed as ${ACCEPTED_ENCODINGS}, and this one is not.`,
    );
  }
  return () => create({ chunkSize: CHUNK_BYTES });
}

function decompressionError(): RpcStatusError {
  return statusError(RPC_CODES.INTERNAL, "A message could not be decompressed.");
}

function statusError(code: number, message: string): RpcStatusError {
  return new RpcStatusError({ code, message });
}

/** A flag that says whether the message is compressed, and its length. */
export const PREFIX_BYTES = 5;

/** Finds messages in the bytes of a request, however these were cut on their way. */
export class MessageReader {
  readonly #maxBytes: number;
  /** What came and was not taken. The first piece has the prefix of the next message, if that is there. */
  #first: Buffer = EMPTY;
  #more: Buffer[] | undefined;
  #length = 0;
  /** Bytes up to the end of the next message; up to the end of its prefix while that has not come. */
  #wanted = PREFIX_BYTES;
  #isCompressed = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that came and were not taken. */
  get length(): number {
    return this.#length;
  }

  /** Nothing is left but what was taken. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Of the message that was taken last. */
  get isCompressed(): boolean {
    return this.#isCompressed;
  }

  push(piece: Buffer): void {
    if (this.#length === 0) this.#first = piece;
    else if (this.#more === undefined) this.#more = [piece];
    else this.#more.push(piece);
    this.#length += piece.length;
  }

  /** The next message, if it is there in full. Throws an RpcStatusError for one that is larger than allowed. */
  next(): Buffer | undefined {
    if (this.#length < this.#wanted) return undefined;
    this.#join();
    const bytes = this.#first;
    const end = PREFIX_BYTES + bytes.readUInt32BE(1);
    if (end - PREFIX_BYTES > this.#maxBytes) throw messageTooLarge(this.#maxBytes);
    if (this.#length < end) {
      this.#wanted = end;
      return undefined;
    }
    this.#wanted = PREFIX_BYTES;
    this.#length -= end;
    this.#first = this.#length === 0 ? EMPTY : bytes.subarray(end);
    this.#isCompressed = bytes[0] === 1;
    return bytes.subarray(PREFIX_BYTES, end);
  }

  /** Twice for each message at most, for its prefix and for its end, so that many small pieces are not copied often. */
  #join(): void {
    if (this.#more === undefined) return;
    this.#first = Buffer.concat([this.#first, ...this.#more], this.#length);
    this.#more = undefined;
  }
}

const EMPTY = Buffer.alloc(0);

function messageTooLarge(maxBytes: number): RpcStatusError {
  const message = `A message may have ${maxBytes} bytes at most.`;
  return new RpcStatusError({ code: RPC_CODES.RESOURCE_EXHAUSTED, message });
}

/** Messages with their prefixes, in one piece. */
export function encodeFrames(messages: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const message of messages) length += PREFIX_BYTES + message.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const message of messages) at = writeFrame(bytes, message, at);
  return bytes;
}

export function encodeFrame(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  writeFrame(bytes, message, 0);
  return bytes;
}

/** What comes before a message that is not compressed. */
export function encodePrefix(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(PREFIX_BYTES);
  bytes.writeUInt32BE(message.length, 1);
  return bytes;
}

function writeFrame(bytes: Buffer, message: Uint8Array, at: number): number {
  bytes[at] = 0;
  bytes.writeUInt32BE(message.length, at + 1);
  bytes.set(message, at + PREFIX_BYTES);
  return at + PREFIX_BYTES + message.length;
}
