/** Binary codecs of field types, including well-known messages. */
import type { JsonObject, JsonValue } from "../../../model/json.ts";
import { tagOf, WIRE, type WireReader, type WireType, type WireWriter } from "./binary-wire.ts";
import type { ScalarName } from "./json-reading.ts";

export interface DecodeState {
  depth: number;
  readonly maxDepth: number;
  fields: number;
  readonly maxFields: number;
}

/** The bytes may be a valid message but exceed a limit. */
export class LimitExceededError extends Error {}

export function countLevel(state: DecodeState): void {
  if (++state.depth > state.maxDepth) {
    throw new LimitExceededError(`The message is nested deeper than ${state.maxDepth} levels.`);
  }
}

/** Many small fields are the most expensive input. */
export function countField(state: DecodeState): void {
  if (++state.fields > state.maxFields)
    throw new LimitExceededError(`The message has more than ${state.maxFields} fields.`);
}

/** JSON cannot represent such numbers, and neither can the model. */
export class NotFiniteError extends Error {
  constructor() {
    super("A number in a value must be finite.");
  }
}

export interface BinaryType {
  readonly wireType: WireType;
  /** Fields without presence are omitted at their default. */
  isDefault(value: unknown): boolean;
  /** Writes the value, length-prefixed if its type is; the tag is written afterwards. */
  write(writer: WireWriter, value: unknown): void;
  read(reader: WireReader, state: DecodeState): unknown;
  /** Value of a map entry that has only a key. */
  empty?(): unknown;
}

const string: BinaryType = {
  wireType: WIRE.lengthDelimited,
  isDefault: (value) => value === "",
  write: (writer, value) => writer.string(value as string),
  read: (reader) => reader.string(),
  empty: () => "",
};

const bool: BinaryType = {
  wireType: WIRE.varint,
  isDefault: (value) => value === false,
  write: (writer, value) => writer.bool(value as boolean),
  read: (reader) => reader.bool(),
};

const int32: BinaryType = {
  wireType: WIRE.varint,
  isDefault: (value) => value === 0,
  write: (writer, value) => writer.varint(value as number),
  read: (reader) => reader.int32(),
};

const bytes: BinaryType = {
  wireType: WIRE.lengthDelimited,
  isDefault: (value) => value === "",
  write: (writer, value) => writer.bytes(Buffer.from(value as string, "base64")),
  read: (reader) => reader.bytes().toString("base64"),
};

const NANOS_PER_MS = 1_000_000;
/** Range of `Timestamp`: years 1 to 9999. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;

const timestamp: BinaryType = {
  wireType: WIRE.lengthDelimited,
  isDefault: (value) => value === "",
  write(writer, value) {
    const instant = Date.parse(value as string);
    const seconds = Math.floor(instant / 1000);
    const nanos = (instant - seconds * 1000) * NANOS_PER_MS;
    const before = writer.length;
    if (nanos !== 0) writeNumber(writer, 2, nanos);
    if (seconds !== 0) writeNumber(writer, 1, seconds);
    writer.lengthSince(before);
  },
  read(reader, state) {
    let seconds = 0;
    let nanos = 0;
    eachField(reader, state, (number, wireType) => {
      if (wireType !== WIRE.varint || number > 2) return false;
      if (number === 1) seconds = reader.int64();
      else nanos = reader.int32();
      return true;
    });
    if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) return "out of range";
    return new Date(seconds * 1000 + Math.floor(nanos / NANOS_PER_MS)).toISOString();
  },
};

const struct: BinaryType = {
  wireType: WIRE.lengthDelimited,
  isDefault: () => false,
  write(writer, value) {
    const before = writer.length;
    writeStruct(writer, value as JsonObject);
    writer.lengthSince(before);
  },
  read: readStruct,
};

const value: BinaryType = {
  wireType: WIRE.lengthDelimited,
  isDefault: () => false,
  write(writer, given) {
    const before = writer.length;
    writeValue(writer, given as JsonValue);
    writer.lengthSince(before);
  },
  read: readValue,
};

function writeNumber(writer: WireWriter, field: number, value: number): void {
  writer.varint(value);
  writer.varint(tagOf(field, WIRE.varint));
}

/** Calls back for every field of the message at this position; a field that the callback does not read is skipped. */
function eachField(reader: WireReader, state: DecodeState, take: (number: number, wireType: number) => boolean): void {
  countLevel(state);
  const end = reader.endOfMessage();
  while (reader.at < end) {
    countField(state);
    const tag = reader.tag();
    if (!take(tag >>> 3, tag & 7)) reader.skip(tag);
  }
  if (reader.at !== end) throw new RangeError("A field is longer than its message.");
  state.depth--;
}

const ENTRY = tagOf(1, WIRE.lengthDelimited);
const ENTRY_KEY = tagOf(1, WIRE.lengthDelimited);
const ENTRY_VALUE = tagOf(2, WIRE.lengthDelimited);
const LIST_ITEM = tagOf(1, WIRE.lengthDelimited);

function writeStruct(writer: WireWriter, object: JsonObject): void {
  const names = Object.keys(object);
  for (let index = names.length - 1; index >= 0; index--) {
    const name = names[index] as string;
    const member = object[name];
    if (member === undefined) continue;
    const before = writer.length;
    value.write(writer, member);
    writer.varint(ENTRY_VALUE);
    writer.string(name);
    writer.varint(ENTRY_KEY);
    writer.lengthSince(before);
    writer.varint(ENTRY);
  }
}

/** The fields of `google.protobuf.Value`: null 1, number 2, string 3, bool 4, struct 5, list 6. */
function writeValue(writer: WireWriter, given: JsonValue): void {
  if (given === null) {
    writeNumber(writer, 1, 0);
  } else if (typeof given === "number") {
    writer.double(given);
    writer.varint(tagOf(2, WIRE.bit64));
  } else if (typeof given === "string") {
    writer.string(given);
    writer.varint(tagOf(3, WIRE.lengthDelimited));
  } else if (typeof given === "boolean") {
    writeNumber(writer, 4, given ? 1 : 0);
  } else if (Array.isArray(given)) {
    writeList(writer, given as readonly JsonValue[]);
    writer.varint(tagOf(6, WIRE.lengthDelimited));
  } else {
    struct.write(writer, given);
    writer.varint(tagOf(5, WIRE.lengthDelimited));
  }
}

function writeList(writer: WireWriter, items: readonly JsonValue[]): void {
  const before = writer.length;
  for (let index = items.length - 1; index >= 0; index--) {
    value.write(writer, items[index]);
    writer.varint(LIST_ITEM);
  }
  writer.lengthSince(before);
}

function readStruct(reader: WireReader, state: DecodeState): JsonObject {
  const object: Record<string, JsonValue> = {};
  eachField(reader, state, (number, wireType) => {
    if (number !== 1 || wireType !== WIRE.lengthDelimited) return false;
    let key = "";
    let member: JsonValue = null;
    eachField(reader, state, (entryNumber, entryType) => {
      if (entryType !== WIRE.lengthDelimited || entryNumber > 2) return false;
      if (entryNumber === 1) key = reader.string();
      else member = readValue(reader, state);
      return true;
    });
    // Assigning this key would set the prototype instead of creating a member.
    if (key !== "__proto__") object[key] = member;
    return true;
  });
  return object;
}

function readValue(reader: WireReader, state: DecodeState): JsonValue {
  let read: JsonValue = null;
  eachField(reader, state, (number, wireType) => {
    if (number === 1 && wireType === WIRE.varint) {
      reader.int32();
      read = null;
    } else if (number === 2 && wireType === WIRE.bit64) {
      const number = reader.double();
      if (!Number.isFinite(number)) throw new NotFiniteError();
      read = number;
    } else if (number === 3 && wireType === WIRE.lengthDelimited) {
      read = reader.string();
    } else if (number === 4 && wireType === WIRE.varint) {
      read = reader.bool();
    } else if (number === 5 && wireType === WIRE.lengthDelimited) {
      read = readStruct(reader, state);
    } else if (number === 6 && wireType === WIRE.lengthDelimited) {
      read = readList(reader, state);
    } else {
      return false;
    }
    return true;
  });
  return read;
}

function readList(reader: WireReader, state: DecodeState): JsonValue {
  const items: JsonValue[] = [];
  eachField(reader, state, (number, wireType) => {
    if (number !== 1 || wireType !== WIRE.lengthDelimited) return false;
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
