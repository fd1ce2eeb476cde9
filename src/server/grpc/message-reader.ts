import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";

/** A flag that says whether the message is compressed, and its length. */
export const PREFIX_BYTES = 5;

/** Finds messages in the bytes of a request, however these were cut on their way. */
export class MessageReader {
  readonly #maxBytes: number;
  /** What came and was not taken. The first piece has the prefix of the next message, if that is there. */
  #first: Buffer = NOTHING;
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
    if (end - PREFIX_BYTES > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (this.#length < end) {
      this.#wanted = end;
      return undefined;
    }
    this.#wanted = PREFIX_BYTES;
    this.#length -= end;
    this.#first = this.#length === 0 ? NOTHING : bytes.subarray(end);
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

const NOTHING = Buffer.alloc(0);

export function tooLarge(maxBytes: number): RpcStatusError {
  const message = `A message may have ${maxBytes} bytes at most.`;
  return new RpcStatusError({ code: RPC_CODES.RESOURCE_EXHAUSTED, message });
}

/** Messages with their prefixes, in one piece. */
export function framed(messages: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const message of messages) length += PREFIX_BYTES + message.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const message of messages) at = writeFrame(bytes, message, at);
  return bytes;
}

export function framedOne(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  writeFrame(bytes, message, 0);
  return bytes;
}

/** What comes before a message that is not compressed. */
export function prefixOf(message: Uint8Array): Buffer {
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
