/**
 * Binary codec for the messages that tables describe, from and to the same plain objects as their JSON form: enums by
 * name, bytes as base64, timestamps as strings. One description yields JSON, binary, `.proto` text and reflection.
 */
import { ProtocolError } from "../../../model/errors.ts";
import {
  BINARY_SCALARS,
  type BinaryType,
  countField,
  countLevel,
  type DecodeState,
  LimitExceededError,
  NotFiniteError,
} from "./binary-scalars.ts";
import { tagOf, WIRE, WireReader, WireWriter } from "./binary-wire.ts";
import type { FieldRow, Presence, ProtoTables } from "./json-codec.ts";

interface ProtobufCodec<Name extends string> {
  /** Does not validate the value; unknown members are omitted. */
  encode(name: Name, value: unknown): Uint8Array;
  /** The decoded message, not validated; unknown fields are skipped. Throws PARSE_ERROR for malformed bytes. */
  decode(name: Name, bytes: Uint8Array, options?: DecodeOptions): Record<string, unknown>;
}

export interface DecodeOptions {
  /** Maximum nesting depth. */
  readonly maxDepth?: number;
  /** Maximum number of JSON values in the message. Default: unlimited. */
  readonly maxValues?: number;
}

const DEFAULT_MAX_DEPTH = 256;
/** A member of a `google.protobuf.Struct` consists of an entry, its key, its value, and the value's content. */
const FIELDS_PER_VALUE = 4;

interface MessageType extends BinaryType {
  writeFields(writer: WireWriter, value: unknown): void;
  decodeFields(reader: WireReader, end: number, state: DecodeState): Record<string, unknown>;
}

/** Compiles all tables. */
export function compileProtobuf<Name extends string>(tables: ProtoTables): ProtobufCodec<Name> {
  const compiled = new Map<string, MessageType>();
  const messageNamed = (name: string): MessageType => {
    let type = compiled.get(name);
    if (type === undefined) {
      type = compileMessage(tables.messages[name] as readonly FieldRow[], typeNamed);
      compiled.set(name, type);
    }
    return type;
  };
  const typeNamed = (name: string): BinaryType => {
    const names = tables.enums[name];
    if (names !== undefined) return enumOf(names);
    if (tables.messages[name] !== undefined) return lazyType(() => messageNamed(name));
    return BINARY_SCALARS[name as keyof typeof BINARY_SCALARS];
  };

  // Reused across messages, so that its buffer need not grow each time. Nothing else writes to it in between.
  const writer = new WireWriter();
  return {
    encode(name, value) {
      try {
        messageNamed(name).writeFields(writer, value);
        return writer.finish();
      } catch (error) {
        writer.clear();
        throw error;
      }
    },
    decode(name, bytes, { maxDepth = DEFAULT_MAX_DEPTH, maxValues = Number.POSITIVE_INFINITY } = {}) {
      const reader = new WireReader(bytes);
      try {
        return messageNamed(name).decodeFields(reader, reader.end, {
          depth: 0,
          maxDepth,
          fields: 0,
          maxFields: FIELDS_PER_VALUE * maxValues,
        });
      } catch (error) {
        throw toDecodeError(error);
      }
    },
  };
}

function toDecodeError(cause: unknown): ProtocolError {
  if (cause instanceof LimitExceededError) return new ProtocolError("INVALID_REQUEST", cause.message);
  if (cause instanceof NotFiniteError) return new ProtocolError("INVALID_PARAMS", cause.message);
  return new ProtocolError("PARSE_ERROR", "The bytes are not a message of the expected kind.", { cause });
}

/** Messages may be recursive, so a type is resolved on first use. */
function lazyType(find: () => MessageType): BinaryType {
  let found: MessageType | undefined;
  const type = () => {
    found ??= find();
    return found;
  };
  return {
    wireType: WIRE.lengthDelimited,
    isDefault: () => false,
    write: (writer, value) => type().write(writer, value),
    read: (reader, state) => type().read(reader, state),
  };
}

interface FieldCodec {
  readonly name: string;
  write(writer: WireWriter, value: unknown): void;
  read(reader: WireReader, tag: number, message: Record<string, unknown>, state: DecodeState): void;
}

function compileMessage(rows: readonly FieldRow[], typeNamed: (name: string) => BinaryType): MessageType {
  const fields = rows.map((row) => compileField(row, typeNamed));
  const backwards = fields.toReversed();
  const byNumber: (FieldCodec | undefined)[] = [];
  rows.forEach(([, , , number], at) => {
    byNumber[number] = fields[at];
  });

  function decodeFields(reader: WireReader, end: number, state: DecodeState): Record<string, unknown> {
    countLevel(state);
    const message: Record<string, unknown> = {};
    while (reader.at < end) {
      countField(state);
      const tag = reader.tag();
      const field = byNumber[tag >>> 3];
      if (field === undefined) reader.skip(tag);
      else field.read(reader, tag, message, state);
    }
    if (reader.at !== end) throw new RangeError("A field is longer than its message.");
    state.depth--;
    return message;
  }

  function writeFields(writer: WireWriter, value: unknown): void {
    const message = value as Readonly<Record<string, unknown>>;
    for (const field of backwards) {
      const member = message[field.name];
      if (member !== undefined) field.write(writer, member);
    }
  }

  return {
    wireType: WIRE.lengthDelimited,
    isDefault: () => false,
    write(writer, value) {
      const before = writer.length;
      writeFields(writer, value);
      writer.lengthSince(before);
    },
    writeFields,
    read: (reader, state) => decodeFields(reader, reader.endOfMessage(), state),
    decodeFields,
  };
}

function compileField([name, type, presence, number]: FieldRow, typeNamed: (name: string) => BinaryType): FieldCodec {
  if (type.endsWith("[]")) return listField(name, number, typeNamed(type.slice(0, -2)));
  if (type.startsWith("map<")) return mapField(name, number, typeNamed(type.slice(4, -1)));
  return singleField(name, number, presence, typeNamed(type));
}

function singleField(name: string, number: number, presence: Presence, type: BinaryType): FieldCodec {
  const always = presence === "optional" || presence === "oneof";
  const ownTag = tagOf(number, type.wireType);
  return {
    name,
    write(writer, value) {
      if (!always && type.isDefault(value)) return;
      type.write(writer, value);
      writer.varint(ownTag);
    },
    read(reader, tag, message, state) {
      if (tag !== ownTag) reader.skip(tag);
      else message[name] = type.read(reader, state);
    },
  };
}

function listField(name: string, number: number, type: BinaryType): FieldCodec {
  const ownTag = tagOf(number, type.wireType);
  const packedTag = tagOf(number, WIRE.lengthDelimited);
  return {
    name,
    write(writer, value) {
      const items = value as readonly unknown[];
      for (let index = items.length - 1; index >= 0; index--) {
        type.write(writer, items[index]);
        writer.varint(ownTag);
      }
    },
    read(reader, tag, message, state) {
      const items = message[name] as unknown[] | undefined;
      if (tag === ownTag) {
        const item = type.read(reader, state);
        // Created with its first item, the list reserves no extra capacity, which most lists never need.
        if (items === undefined) message[name] = [item];
        else items.push(item);
        return;
      }
      const list = items ?? [];
      message[name] = list;
      if (tag !== packedTag) reader.skip(tag);
      else for (const end = reader.endOfMessage(); reader.at < end; ) list.push(type.read(reader, state));
    },
  };
}

function mapField(name: string, number: number, type: BinaryType): FieldCodec {
  const ownTag = tagOf(number, WIRE.lengthDelimited);
  const keyTag = tagOf(1, WIRE.lengthDelimited);
  const itemTag = tagOf(2, type.wireType);
  return {
    name,
    write(writer, value) {
      for (const [key, item] of Object.entries(value as Readonly<Record<string, unknown>>).reverse()) {
        const before = writer.length;
        type.write(writer, item);
        writer.varint(itemTag);
        writer.string(key);
        writer.varint(keyTag);
        writer.lengthSince(before);
        writer.varint(ownTag);
      }
    },
    read(reader, tag, message, state) {
      if (tag !== ownTag) {
        reader.skip(tag);
        return;
      }
      message[name] ??= {};
      const end = reader.endOfMessage();
      let key = "";
      let item: unknown;
      while (reader.at < end) {
        const entryTag = reader.tag();
        if (entryTag === keyTag) key = reader.string();
        else if (entryTag === itemTag) item = type.read(reader, state);
        else reader.skip(entryTag);
      }
      // Assigning this key would set the prototype instead of creating a member.
      if (key !== "__proto__") (message[name] as Record<string, unknown>)[key] = item ?? type.empty?.() ?? {};
    },
  };
}

/** An unknown number is returned as a number; validation of the message reports it. */
function enumOf(names: readonly string[]): BinaryType {
  const numbers = new Map(names.map((name, number) => [name, number]));
  return {
    wireType: WIRE.varint,
    isDefault: (value) => value === "" || value === names[0],
    write: (writer, value) => writer.varint(numbers.get(value as string) ?? 0),
    read(reader) {
      const number = reader.int32();
      return names[number] ?? number;
    },
  };
}
