import { addAbortSignal, type Transform } from "node:stream";
import { createGunzip, createInflate, type ZlibOptions } from "node:zlib";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { tooLarge } from "./message-reader.ts";

/** What callers may compress their messages with. */
export const ENCODINGS = "identity,deflate,gzip";

const METHODS: ReadonlyMap<string, (options: ZlibOptions) => Transform> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate],
]);

/** Fewer than Node has threads for such work, so that files and names are still looked up meanwhile. */
const MAX_AT_ONCE = 2;
const CHUNK_BYTES = 64 * 1024;

export interface DecompressOptions {
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
    const stream = streamOf(options.encoding);
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
    if (this.#running < MAX_AT_ONCE) {
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
        reject(broken());
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
      if (length > maxBytes) throw tooLarge(maxBytes);
      take(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof RpcStatusError ? error : broken();
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length);
}

function streamOf(encoding: string | undefined): () => Transform {
  if (encoding === undefined || encoding === "identity") {
    throw failure(RPC_CODES.INTERNAL, "A message is marked as compressed, but grpc-encoding is missing.");
  }
  const create = METHODS.get(encoding);
  if (create === undefined) {
    throw failure(RPC_CODES.UNIMPLEMENTED, `Messages may be compressed as ${ENCODINGS}, and this one is not.`);
  }
  return () => create({ chunkSize: CHUNK_BYTES });
}

function broken(): RpcStatusError {
  return failure(RPC_CODES.INTERNAL, "A message could not be decompressed.");
}

function failure(code: number, message: string): RpcStatusError {
  return new RpcStatusError({ code, message });
}
