/** The types of single fields in binary, well-known messages included. */
import { type BinaryReader, type BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { ScalarName } from "./proto-json-scalars.ts";

export interface DecodeState {
  depth: number;
  readonly maxDepth: number;
}

export class TooDeepError extends Error {
  constructor(maxDepth: number) {
    super(`The message is nested deeper than ${maxDepth} levels.`);
  }
}

/** JSON has no word for such numbers, and so neither has the model. */
export class NotFiniteError extends Error {
  constructor() {
    super("A number in a value must be finite.");
  }
}

export interface BinaryType {
  readonly wireType: WireType;
  /** Fields without presence are not written at their default. */
  isDefault(value: unknown): boolean;
  /** The tag is written already. */
  write(writer: BinaryWriter, value: unknown): void;
  read(reader: BinaryReader, state: DecodeState): unknown;
  /** Of an entry of a map that has only its key. */
  empty?(): unknown;
}

const string: BinaryType = {
  wireType: WireType.LengthDelimited,
  isDefault: (value) => value === "",
  write: (writer, value) => writer.string(value as string),
  read: (reader) => reader.string(true),
  empty: () => "",
};

const bool: BinaryType = {
  wireType: WireType.Varint,
  isDefault: (value) => value === false,
  write: (writer, value) => writer.bool(value as boolean),
  read: (reader) => reader.bool(),
};

const int32: BinaryType = {
  wireType: WireType.Varint,
  isDefault: (value) => value === 0,
  write: (writer, value) => writer.int32(value as number),
  read: (reader) => reader.int32(),
};

const bytes: BinaryType = {
  wireType: WireType.LengthDelimited,
  isDefault: (value) => value === "",
  write: (writer, value) => writer.bytes(Buffer.from(value as string, "base64")),
  read(reader) {
    const read = reader.bytes();
    return Buffer.from(read.buffer, read.byteOffset, read.byteLength).toString("base64");
  },
};

const NANOS_PER_MS = 1_000_000;
/** What `Timestamp` allows: years 1 to 9999. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;

const timestamp: BinaryType = {
  wireType: WireType.LengthDelimited,
  isDefault: (value) => value === "",
  write(writer, value) {
    const instant = Date.parse(value as string);
    const seconds = Math.floor(instant / 1000);
    const nanos = (instant - seconds * 1000) * NANOS_PER_MS;
    writer.fork();
    if (seconds !== 0) writer.tag(1, WireType.Varint).int64(seconds);
    if (nanos !== 0) writer.tag(2, WireType.Varint).int32(nanos);
    writer.join();
  },
  read(reader, state) {
    let seconds = 0;
    let nanos = 0;
    eachField(reader, state, (number, wireType) => {
      if (wireType !== WireType.Varint || number > 2) return false;
      if (number === 1) seconds = Number(reader.int64());
      else nanos = reader.int32();
      return true;
    });
    if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) return "out of range";
    return new Date(seconds * 1000 + Math.floor(nanos / NANOS_PER_MS)).toISOString();
  },
};

const struct: BinaryType = {
  wireType: WireType.LengthDelimited,
  isDefault: () => false,
  write(writer, value) {
    writer.fork();
    writeStruct(writer, value as JsonObject);
    writer.join();
  },
  read: readStruct,
};

const value: BinaryType = {
  wireType: WireType.LengthDelimited,
  isDefault: () => false,
  write(writer, given) {
    writer.fork();
    writeValue(writer, given as JsonValue);
    writer.join();
  },
  read: readValue,
};

/** Calls back for every field of the message that begins here; one that is not taken is skipped. */
function eachField(
  reader: BinaryReader,
  state: DecodeState,
  take: (number: number, wireType: WireType) => boolean,
): void {
  if (++state.depth > state.maxDepth) throw new TooDeepError(state.maxDepth);
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError("A field is longer than its message.");
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (!take(number, wireType)) reader.skip(wireType, number);
  }
  if (reader.pos !== end) throw new RangeError("A field is longer than its message.");
  state.depth--;
}

function writeStruct(writer: BinaryWriter, object: JsonObject): void {
  for (const [key, member] of Object.entries(object)) {
    if (member === undefined) continue;
    writer.tag(1, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(key);
    writer.tag(2, WireType.LengthDelimited).fork();
    writeValue(writer, member);
    writer.join().join();
  }
}

/** The fields of `google.protobuf.Value`: null 1, number 2, string 3, bool 4, struct 5, list 6. */
function writeValue(writer: BinaryWriter, given: JsonValue): void {
  if (given === null) {
    writer.tag(1, WireType.Varint).int32(0);
  } else if (typeof given === "number") {
    writer.tag(2, WireType.Bit64).double(given);
  } else if (typeof given === "string") {
    writer.tag(3, WireType.LengthDelimited).string(given);
  } else if (typeof given === "boolean") {
    writer.tag(4, WireType.Varint).bool(given);
  } else if (Array.isArray(given)) {
    writer.tag(6, WireType.LengthDelimited).fork();
    for (const item of given as readonly JsonValue[]) {
      writer.tag(1, WireType.LengthDelimited).fork();
      writeValue(writer, item);
      writer.join();
    }
    writer.join();
  } else {
    writer.tag(5, WireType.LengthDelimited).fork();
    writeStruct(writer, given as JsonObject);
    writer.join();
  }
}

function readStruct(reader: BinaryReader, state: DecodeState): JsonObject {
  const object: Record<string, JsonValue> = {};
  eachField(reader, state, (number, wireType) => {
    if (number !== 1 || wireType !== WireType.LengthDelimited) return false;
    let key = "";
    let member: JsonValue = null;
    eachField(reader, state, (entryNumber, entryType) => {
      if (entryType !== WireType.LengthDelimited || entryNumber > 2) return false;
      if (entryNumber === 1) key = reader.string(true);
      else member = readValue(reader, state);
      return true;
    });
    // Assigning this key would set the prototype instead of making a member.
    if (key !== "__proto__") object[key] = member;
    return true;
  });
  return object;
}

function readValue(reader: BinaryReader, state: DecodeState): JsonValue {
  let read: JsonValue = null;
  eachField(reader, state, (number, wireType) => {
    if (number === 1 && wireType === WireType.Varint) {
      reader.int32();
      read = null;
    } else if (number === 2 && wireType === WireType.Bit64) {
      const number = reader.double();
      if (!Number.isFinite(number)) throw new NotFiniteError();
      read = number;
    } else if (number === 3 && wireType === WireType.LengthDelimited) {
      read = reader.string(true);
    } else if (number === 4 && wireType === WireType.Varint) {
      read = reader.bool();
    } else if (number === 5 && wireType === WireType.LengthDelimited) {
      read = readStruct(reader, state);
    } else if (number === 6 && wireType === WireType.LengthDelimited) {
      read = readList(reader, state);
    } else {
      return false;
    }
    return true;
  });
  return read;
}

function readList(reader: BinaryReader, state: DecodeState): JsonValue {
  const items: JsonValue[] = [];
  eachField(reader, state, (number, wireType) => {
    if (number !== 1 || wireType !== WireType.LengthDelimited) return false;
    items.push(readValue(reader, state));
    return true;
  });
  return items;
}

export const BINARY_SCALARS = {
  string,
  bool,
  int32,
  length: int32,
  pageSize: int32,
  bytes,
  timestamp,
  struct,
  value,
} as const satisfies Record<ScalarName, BinaryType>;
