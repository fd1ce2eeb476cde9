/** The protobuf wire format: numbers, strings and tags, independent of any schema. */

export const WIRE = { varint: 0, bit64: 1, lengthDelimited: 2, startGroup: 3, endGroup: 4, bit32: 5 } as const;

export type WireType = (typeof WIRE)[keyof typeof WIRE];

export function tagOf(number: number, type: WireType): number {
  return number * 8 + type;
}

const INITIAL_SIZE = 1024;
/** A larger buffer, grown for one large message, is not retained for later messages. */
const MAX_REUSED_SIZE = 64 * 1024;
/** Strings up to this length are written character by character, which is faster than a native call. */
const MAX_SHORT_TEXT = 64;

/**
 * Writes backwards, so that the length of a message is known when its start is reached. Callers therefore write the
 * last field first, and of each field the value, then its length, then its tag.
 */
export class WireWriter {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_SIZE);
  #at = INITIAL_SIZE;

  /** Bytes written so far. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  /** Returns a copy of the written bytes and resets the writer. */
  finish(): Uint8Array {
    const bytes = Buffer.allocUnsafe(this.length);
    this.#bytes.copy(bytes, 0, this.#at);
    this.clear();
    return bytes;
  }

  clear(): void {
    if (this.#bytes.length > MAX_REUSED_SIZE) this.#bytes = Buffer.allocUnsafeSlow(INITIAL_SIZE);
    this.#at = this.#bytes.length;
  }

  /** Writes the number of bytes written since `before`. */
  lengthSince(before: number): void {
    this.varint(this.length - before);
  }

  /** An integer; a negative one takes ten bytes, as a 64-bit value. */
  varint(value: number): void {
    if (value >= 0 && value < 0x80) {
      this.#reserve(1);
      this.#bytes[this.#at] = value;
    } else if (value < 0) this.#negative(value);
    else {
      this.#reserve(varintSize(value));
      let at = this.#at;
      let rest = value;
      for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[at++] = (rest % 0x80) | 0x80;
      this.#bytes[at] = rest;
    }
  }

  bool(value: boolean): void {
    this.varint(value ? 1 : 0);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** Length-prefixed. */
  string(value: string): void {
    if (value.length > MAX_SHORT_TEXT || !this.#shortText(value)) {
      const size = Buffer.byteLength(value);
      this.#reserve(size);
      this.#bytes.write(value, this.#at, "utf8");
      this.varint(size);
    }
  }

  /** Length-prefixed. */
  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.varint(value.length);
  }

  /** Returns false and writes nothing if the string is not ASCII. */
  #shortText(value: string): boolean {
    const { length } = value;
    this.#reserve(length + 1);
    const bytes = this.#bytes;
    const at = this.#at + 1;
    for (let index = 0; index < length; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) {
        this.#at += length + 1;
        return false;
      }
      bytes[at + index] = code;
    }
    bytes[at - 1] = length;
    return true;
  }

  #negative(value: number): void {
    this.#reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    for (let index = 0; index < 9; index++, rest >>= 7n) this.#bytes[this.#at + index] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#at + 9] = Number(rest);
  }

  #reserve(size: number): void {
    if (this.#at < size) this.#grow(size);
    this.#at -= size;
  }

  #grow(size: number): void {
    const { length } = this;
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, length + size));
    this.#bytes.copy(grown, grown.length - length, this.#at);
    this.#bytes = grown;
    this.#at = grown.length - length;
  }
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

const MAX_GROUPS = 100;
const MAX_VARINT_BYTES = 10;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads forwards; throws for malformed input. */
export class WireReader {
  readonly #bytes: Buffer;
  readonly end: number;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.end = bytes.length;
  }

  get at(): number {
    return this.#at;
  }

  /** The tag: field number times eight, plus wire type. */
  tag(): number {
    const start = this.#at;
    const tag = this.uint32();
    const size = this.#at - start;
    const isTooLong = size > 5 || (size === 5 && (this.#bytes[this.#at - 1] as number) > 0x0f);
    if (isTooLong || tag >>> 3 === 0 || (tag & 7) > WIRE.bit32) throw new RangeError("Unknown field.");
    return tag;
  }

  /** Skips the field with this tag. */
  skip(tag: number, groups = MAX_GROUPS): void {
    switch (tag & 7) {
      case WIRE.varint:
        this.bool();
        return;
      case WIRE.bit64:
        this.#take(8);
        return;
      case WIRE.bit32:
        this.#take(4);
        return;
      case WIRE.lengthDelimited:
        this.#take(this.uint32());
        return;
      case WIRE.startGroup:
        this.#skipGroup(tag >>> 3, groups);
        return;
      default:
        throw new RangeError("A group ends that has not begun.");
    }
  }

  /** The lower 32 bits of a longer varint. */
  uint32(): number {
    let byte = this.#byte();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let index = 1; index < MAX_VARINT_BYTES; index++) {
      byte = this.#byte();
      if (index < 5) value |= (byte & 0x7f) << (7 * index);
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError("A number has no end.");
  }

  int32(): number {
    return this.uint32() | 0;
  }

  /** As the nearest double. */
  int64(): number {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    throw new RangeError("A number has no end.");
  }

  bool(): boolean {
    let bits = 0;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#byte();
      bits |= byte & 0x7f;
      if (byte < 0x80) return bits !== 0;
    }
    throw new RangeError("A number has no end.");
  }

  double(): number {
    return this.#bytes.readDoubleLE(this.#take(8));
  }

  string(): string {
    const length = this.uint32();
    const start = this.#take(length);
    const bytes = this.#bytes;
    for (let at = start; at < this.#at; at++) {
      if ((bytes[at] as number) > 0x7f) return UTF8.decode(bytes.subarray(start, this.#at));
    }
    return bytes.toString("latin1", start, this.#at);
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const length = this.uint32();
    const start = this.#take(length);
    return this.#bytes.subarray(start, this.#at);
  }

  /** Reads a length prefix; returns the end offset of the message. */
  endOfMessage(): number {
    const length = this.uint32();
    const end = this.#at + length;
    if (end > this.end) throw new RangeError("A field is longer than its message.");
    return end;
  }

  #byte(): number {
    if (this.#at >= this.end) throw new RangeError("The bytes end too soon.");
    return this.#bytes[this.#at++] as number;
  }

  /** Offset at which these bytes start. */
  #take(length: number): number {
    const start = this.#at;
    if (start + length > this.end) throw new RangeError("The bytes end too soon.");
    this.#at = start + length;
    return start;
  }

  #skipGroup(number: number, groups: number): void {
    if (groups === 0) throw new RangeError("Groups are nested too deeply.");
    for (;;) {
      const tag = this.tag();
      if ((tag & 7) === WIRE.endGroup) {
        if (tag >>> 3 !== number) throw new RangeError("A group ends that has not begun.");
        return;
      }
      this.skip(tag, groups - 1);
    }
  }
}
