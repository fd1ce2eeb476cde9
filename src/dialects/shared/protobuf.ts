/**
 * The binary form of the messages that tables describe, from and to the same plain objects their JSON form is: enums by
 * name, bytes as base64, timestamps as text. One description gives JSON, bytes, `.proto` text and reflection.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ProtocolError } from "../../model/errors.ts";
import type { Presence, Row, Tables } from "./proto-json.ts";
import { BINARY_SCALARS, type BinaryType, type DecodeState, NotFiniteError, TooDeepError } from "./protobuf-scalars.ts";

export interface ProtobufCodec<Name extends string> {
  /** Trusts the value to be of that message; members the table does not know are left out. */
  encode(name: Name, value: unknown): Uint8Array;
  /** What the bytes say, unvalidated; unknown fields are skipped. Throws PARSE_ERROR for what is no message at all. */
  decode(name: Name, bytes: Uint8Array, options?: DecodeOptions): Record<string, unknown>;
}

export interface DecodeOptions {
  /** Levels of nesting. */
  readonly maxDepth?: number;
}

const DEFAULT_DEPTH = 256;
/** A buffer that one large message made is not kept for the small ones that follow. */
const KEPT_BUFFER = 64 * 1024;

interface MessageType extends BinaryType {
  decodeFields(reader: BinaryReader, end: number, state: DecodeState): Record<string, unknown>;
}

/** Compiles all tables, once. */
export function compileProtobuf<Name extends string>(tables: Tables): ProtobufCodec<Name> {
  const compiled = new Map<string, MessageType>();
  const messageNamed = (name: string): MessageType => {
    let type = compiled.get(name);
    if (type === undefined) {
      type = compileMessage(tables.messages[name] as readonly Row[], typeNamed);
      compiled.set(name, type);
    }
    return type;
  };
  const typeNamed = (name: string): BinaryType => {
    const names = tables.enums[name];
    if (names !== undefined) return enumOf(names);
    if (tables.messages[name] !== undefined) return lazily(() => messageNamed(name));
    return BINARY_SCALARS[name as keyof typeof BINARY_SCALARS];
  };

  // Kept from message to message, so that its buffer need not grow anew each time. Nobody else writes in between.
  let writer = new BinaryWriter();
  return {
    encode(name, value) {
      let bytes: Uint8Array | undefined;
      try {
        messageNamed(name).write(writer, value);
        bytes = writer.finish();
        return bytes;
      } finally {
        if (bytes === undefined || bytes.length > KEPT_BUFFER) writer = new BinaryWriter();
      }
    },
    decode(name, bytes, { maxDepth = DEFAULT_DEPTH } = {}) {
      const reader = new BinaryReader(bytes);
      try {
        return messageNamed(name).decodeFields(reader, reader.len, { depth: 0, maxDepth });
      } catch (error) {
        throw unreadable(error);
      }
    },
  };
}

function unreadable(cause: unknown): ProtocolError {
  if (cause instanceof TooDeepError) return new ProtocolError("INVALID_REQUEST", cause.message);
  if (cause instanceof NotFiniteError) return new ProtocolError("INVALID_PARAMS", cause.message);
  return new ProtocolError("PARSE_ERROR", "The bytes are not a message of the expected kind.", { cause });
}

/** Messages may contain themselves, so that a type is looked up when it is first used. */
function lazily(find: () => MessageType): BinaryType {
  let found: MessageType | undefined;
  const type = () => {
    found ??= find();
    return found;
  };
  return {
    wireType: WireType.LengthDelimited,
    isDefault: () => false,
    write: (writer, value) => {
      type().write(writer.fork(), value);
      writer.join();
    },
    read: (reader, state) => type().read(reader, state),
  };
}

interface FieldCodec {
  readonly name: string;
  write(writer: BinaryWriter, value: unknown): void;
  read(reader: BinaryReader, wireType: WireType, message: Record<string, unknown>, state: DecodeState): void;
}

function compileMessage(rows: readonly Row[], typeNamed: (name: string) => BinaryType): MessageType {
  const fields = rows.map((row) => compileField(row, typeNamed));
  const byNumber = new Map(rows.map(([, , , number], at) => [number, fields[at] as FieldCodec]));

  function decodeFields(reader: BinaryReader, end: number, state: DecodeState): Record<string, unknown> {
    if (++state.depth > state.maxDepth) throw new TooDeepError(state.maxDepth);
    const message: Record<string, unknown> = {};
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      const field = byNumber.get(number);
      if (field === undefined) reader.skip(wireType, number);
      else field.read(reader, wireType, message, state);
    }
    if (reader.pos !== end) throw new RangeError("A field is longer than its message.");
    state.depth--;
    return message;
  }

  return {
    wireType: WireType.LengthDelimited,
    isDefault: () => false,
    write(writer, value) {
      const message = value as Readonly<Record<string, unknown>>;
      for (const field of fields) {
        const member = message[field.name];
        if (member !== undefined) field.write(writer, member);
      }
    },
    read: (reader, state) => decodeFields(reader, endOf(reader), state),
    decodeFields,
  };
}

function endOf(reader: BinaryReader): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError("A field is longer than its message.");
  return end;
}

function compileField([name, type, presence, number]: Row, typeNamed: (name: string) => BinaryType): FieldCodec {
  if (type.endsWith("[]")) return listField(name, number, typeNamed(type.slice(0, -2)));
  if (type.startsWith("map<")) return mapField(name, number, typeNamed(type.slice(4, -1)));
  return singleField(name, number, presence, typeNamed(type));
}

function singleField(name: string, number: number, presence: Presence, type: BinaryType): FieldCodec {
  const always = presence === "optional" || presence === "oneof";
  return {
    name,
    write(writer, value) {
      if (!always && type.isDefault(value)) return;
      type.write(writer.tag(number, type.wireType), value);
    },
    read(reader, wireType, message, state) {
      if (wireType !== type.wireType) reader.skip(wireType, number);
      else message[name] = type.read(reader, state);
    },
  };
}

function listField(name: string, number: number, type: BinaryType): FieldCodec {
  const packable = type.wireType !== WireType.LengthDelimited;
  return {
    name,
    write(writer, value) {
      for (const item of value as readonly unknown[]) type.write(writer.tag(number, type.wireType), item);
    },
    read(reader, wireType, message, state) {
      message[name] ??= [];
      const items = message[name] as unknown[];
      if (wireType === type.wireType) {
        items.push(type.read(reader, state));
      } else if (packable && wireType === WireType.LengthDelimited) {
        for (const end = endOf(reader); reader.pos < end; ) items.push(type.read(reader, state));
      } else {
        reader.skip(wireType, number);
      }
    },
  };
}

function mapField(name: string, number: number, type: BinaryType): FieldCodec {
  return {
    name,
    write(writer, value) {
      for (const [key, item] of Object.entries(value as Readonly<Record<string, unknown>>)) {
        writer.tag(number, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(key);
        type.write(writer.tag(2, type.wireType), item);
        writer.join();
      }
    },
    read(reader, wireType, message, state) {
      if (wireType !== WireType.LengthDelimited) {
        reader.skip(wireType, number);
        return;
      }
      message[name] ??= {};
      const end = endOf(reader);
      let key = "";
      let item: unknown;
      while (reader.pos < end) {
        const [entryNumber, entryType] = reader.tag();
        if (entryNumber === 1 && entryType === WireType.LengthDelimited) key = reader.string(true);
        else if (entryNumber === 2 && entryType === type.wireType) item = type.read(reader, state);
        else reader.skip(entryType, entryNumber);
      }
      // Assigning this key would set the prototype instead of making a member.
      if (key !== "__proto__") (message[name] as Record<string, unknown>)[key] = item ?? type.empty?.() ?? {};
    },
  };
}

/** A number without a name stays a number: whoever validates the message says what is wrong with it. */
function enumOf(names: readonly string[]): BinaryType {
  const numbers = new Map(names.map((name, number) => [name, number]));
  return {
    wireType: WireType.Varint,
    isDefault: (value) => value === "" || value === names[0],
    write: (writer, value) => writer.int32(numbers.get(value as string) ?? 0),
    read(reader) {
      const number = reader.int32();
      return names[number] ?? number;
    },
  };
}
