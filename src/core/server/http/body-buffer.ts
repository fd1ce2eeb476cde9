import type { IncomingMessage } from "node:http";

/** A Buffer costs about this much besides its bytes. */
const PIECE_OVERHEAD = 512;
/** Smaller pieces are copied into a block. */
const SMALL_BYTES = 4 * 1024;
const MIN_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 16 * 1024;
/** Each piece takes time to parse, whatever its length. */
const MAX_TINY_PIECES = 10_000;
const TINY_BYTES = 16;

/** The pieces of a body that arrives. Counts what they cost in memory, and copies small ones together. */
export class BodyBuffer {
  readonly #pieces: Buffer[] = [];
  #block = Buffer.alloc(0);
  #used = 0;
  #count = 0;
  #length = 0;

  /** Number of bytes received. */
  get length(): number {
    return this.#length;
  }

  /** Many more pieces than a program would send that means to be read. */
  get isFragmented(): boolean {
    return this.#count > MAX_TINY_PIECES && this.#length < this.#count * TINY_BYTES;
  }

  /** Memory that buffering the piece would take. */
  costOf({ length }: Buffer): number {
    if (length >= SMALL_BYTES) return length + PIECE_OVERHEAD;
    return length <= this.#block.length - this.#used ? 0 : this.#nextBlockLength(length) + PIECE_OVERHEAD;
  }

  push(piece: Buffer): void {
    if (piece.length >= SMALL_BYTES) {
      this.#finishBlock();
      this.#pieces.push(piece);
    } else {
      if (piece.length > this.#block.length - this.#used) {
        const length = this.#nextBlockLength(piece.length);
        this.#finishBlock();
        this.#block = Buffer.allocUnsafeSlow(length);
      }
      this.#used += piece.copy(this.#block, this.#used);
    }
    this.#count++;
    this.#length += piece.length;
  }

  concat(): Buffer {
    this.#finishBlock();
    const [first, ...others] = this.#pieces;
    return first !== undefined && others.length === 0 ? first : Buffer.concat(this.#pieces, this.#length);
  }

  /** Blocks grow with the body, so that a few bytes do not take much. */
  #nextBlockLength(needed: number): number {
    return Math.max(needed, Math.min(MAX_BLOCK_BYTES, Math.max(MIN_BLOCK_BYTES, this.#length)));
  }

  #finishBlock(): void {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = Buffer.alloc(0);
    this.#used = 0;
  }
}

/** The status with which a body is refused because of its headers. */
export function statusOfBody(encoding: string | undefined, announced: number, maxBytes: number): 413 | 415 | undefined {
  if (encoding !== undefined && !/^(identity)?$/i.test(encoding)) return 415;
  return announced > maxBytes ? 413 : undefined;
}

/** The body, if a parser of the framework has already consumed it. */
export function bodyReadByFramework(request: IncomingMessage): Buffer | undefined {
  if (!request.readableEnded || !("body" in request)) return undefined;
  const { body } = request;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body ?? ""));
}
