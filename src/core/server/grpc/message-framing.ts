import { addAbortSignal, type Transform } from "node:stream";
import { createGunzip, createInflate, type ZlibOptions } from "node:zlib";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";

/** Compression algorithms accepted in requests. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

const DECOMPRESSORS: ReadonlyMap<string, (options: ZlibOptions) => Transform> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate],
]);

/** Fewer than the threads of Node's pool, which also serves file access and DNS. */
const MAX_CONCURRENT = 2;
const CHUNK_BYTES = 64 * 1024;

interface DecompressOptions {
  /** From the call's headers. */
  readonly encoding: string | undefined;
  readonly maxBytes: number;
  /** Called with the number of decompressed bytes as they are produced; throws if the budget is exceeded. */
  readonly take: (bytes: number) => void;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

/** Decompresses a few messages at a time; others are queued. */
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

  /** A message that finishes passes its slot to the next. */
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
      // Rejects at once: a queued message would hold its bytes until its turn.
      const leave = (): void => {
        this.#waiting.delete(settle);
        reject(decompressionError());
      };
      this.#waiting.add(settle);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

/** Backpressure: reads more only after the output was counted. */
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

/** A flag for compression, and the length of the message. */
export const PREFIX_BYTES = 5;

/** Extracts messages from the bytes of a request, however they are split into chunks. */
export class MessageReader {
  readonly #maxBytes: number;
  /** Unread bytes. The first chunk contains the whole prefix of the next message, if it was received. */
  #first: Buffer = EMPTY;
  #more: Buffer[] | undefined;
  #length = 0;
  /** Bytes to the end of the next message; to the end of its prefix until that is received. */
  #wanted = PREFIX_BYTES;
  #isCompressed = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of unread bytes. */
  get length(): number {
    return this.#length;
  }

  /** No unread bytes are left. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Whether the last message returned is compressed. */
  get isCompressed(): boolean {
    return this.#isCompressed;
  }

  push(piece: Buffer): void {
    if (this.#length === 0) this.#first = piece;
    else if (this.#more === undefined) this.#more = [piece];
    else this.#more.push(piece);
    this.#length += piece.length;
  }

  /** The next message, if complete. Throws an RpcStatusError for one that is larger than allowed. */
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

  /** At most twice per message, for its prefix and its end, so that many small chunks are not copied repeatedly. */
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

/** Messages with their prefixes, in one buffer. */
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

/** Prefix of an uncompressed message. */
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
