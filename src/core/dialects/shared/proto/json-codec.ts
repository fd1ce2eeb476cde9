/**
 * Decodes JSON by field tables, like ProtoJSON parsers: both spellings of names, enums by name or number, integers as
 * numeric strings, any base64, `null` for absent, unknown members ignored. A canonical value is returned as the same
 * object, without a copy. Independent of the messages of any protocol.
 */

import { isObject, type JsonObject, type JsonValue } from "../../../model/json.ts";
import {
  Reading,
  type ReadOptions,
  SCALARS,
  type ScalarName,
  type TypeReader,
  validationError,
} from "./json-reading.ts";

/**
 * - `required`: must be present and not empty
 * - `optional`: preserved if set, even to its default (proto `optional`, and singular messages)
 * - `implicit`: equivalent to absent at its default (`""`, `0`, `false`, empty list or map)
 * - `filled`: always written; absent is read as the default, because some serialisers omit defaults
 * - `restored`: omitted at its default; the default is restored when read
 * - `oneof`: exactly one of these members is set, possibly to its default
 */
export type Presence = "required" | "optional" | "implicit" | "filled" | "restored" | "oneof";

/** Number and proto name are for the binary form. Default of the name: the JSON name in snake_case. */
export type FieldRow = readonly [name: string, type: string, presence: Presence, number: number, protoName?: string];

export interface ProtoTables {
  readonly messages: Readonly<Record<string, readonly FieldRow[]>>;
  /** Names ordered by number; number 0 is "unspecified" and is read as absent. */
  readonly enums: Readonly<Record<string, readonly string[]>>;
  /** Accepted aliases of enum values, each with the proper name. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** For responses of peers: by enum, the name that stands for a missing or unknown value. */
  readonly substitutes?: Readonly<Record<string, string>>;
  /** For responses of peers: by field, the id of a message without one, from its other members and its list index. */
  readonly ids?: Readonly<Record<string, (message: Readonly<Record<string, unknown>>, index: number) => string>>;
}

interface ScalarTypes extends Record<ScalarName, unknown> {
  string: string;
  bool: boolean;
  int32: number;
  length: number;
  pageSize: number;
  bytes: string;
  timestamp: string;
  struct: JsonObject;
  value: JsonValue;
}

type ValueOf<Tables extends ProtoTables, Known, Type> = Type extends `${infer Item}[]`
  ? readonly ValueOf<Tables, Known, Item>[]
  : Type extends `map<${infer Item}>`
    ? Readonly<Record<string, ValueOf<Tables, Known, Item>>>
    : Type extends ScalarName
      ? ScalarTypes[Type]
      : Type extends keyof Known
        ? Known[Type]
        : Type extends keyof Tables["enums"]
          ? Exclude<Tables["enums"][Type][number], `${string}_UNSPECIFIED`>
          : Type extends keyof Tables["messages"]
            ? MessageOf<Tables, Known, Tables["messages"][Type][number]>
            : never;

type AlwaysPresent = "required" | "filled" | "restored";

type MessageOf<Tables extends ProtoTables, Known, Row extends FieldRow> = {
  readonly [R in Row as R[2] extends AlwaysPresent ? R[0] : never]: ValueOf<Tables, Known, R[1]>;
} & {
  readonly [R in Row as R[2] extends AlwaysPresent ? never : R[0]]?: ValueOf<Tables, Known, R[1]>;
};

/** Every message by name, in the form that `read` returns. `Known` names those that are types of the model. */
export type MessageTypes<Tables extends ProtoTables, Known = object> = {
  readonly [Name in keyof Tables["messages"]]: ValueOf<Tables, Known, Name>;
};

interface Field {
  readonly name: string;
  readonly presence: Presence;
  readonly bit: number;
  readonly type: TypeReader;
  /** A peer's message can be read without it. */
  readonly dispensable: boolean;
}

interface ProtoJsonCodec<Name extends string> {
  /** Validates the value as the message of that name. Throws a ProtocolError. */
  read(name: Name, value: unknown, options?: ReadOptions): unknown;
  /** The wire form: without unknown members and defaults. Does not validate the value. */
  write(name: Name, value: unknown): unknown;
}

/** Compiles all tables. */
export function compileProtoJson<Name extends string>(tables: ProtoTables): ProtoJsonCodec<Name> {
  const compiled = new Map<string, TypeReader>();
  const typeNamed = (name: string): TypeReader => {
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const made = compileType(name, tables, typeNamed);
    compiled.set(name, made);
    return made;
  };
  for (const name of Object.keys(tables.messages)) typeNamed(name);

  return {
    read(name, value, options = NO_OPTIONS) {
      const reading = new Reading(options, false);
      const result = typeNamed(name).read(value, reading);
      if (reading.violations.length > 0) throw validationError(reading.violations, options.code ?? "INVALID_PARAMS");
      return result;
    },
    write: (name, value) => typeNamed(name).read(value, new Reading(NO_OPTIONS, true)),
  };
}

const NO_OPTIONS: ReadOptions = {};

function compileType(name: string, tables: ProtoTables, typeNamed: (name: string) => TypeReader): TypeReader {
  if (name.endsWith("[]")) return listOf(typeNamed(name.slice(0, -2)));
  if (name.startsWith("map<")) return mapOf(typeNamed(name.slice(4, -1)));
  const names = tables.enums[name];
  if (names !== undefined) return enumOf(names, tables.aliases ?? {}, tables.substitutes?.[name]);
  const rows = tables.messages[name];
  if (rows !== undefined) return messageOf(rows, typeNamed, tables.ids ?? {});
  return SCALARS[name as ScalarName];
}

function enumOf(
  names: readonly string[],
  aliases: Readonly<Record<string, string>>,
  substitute: string | undefined,
): TypeReader {
  const byAnything = new Map<unknown, string>();
  const byText = new Map<unknown, string>();
  names.forEach((name, number) => {
    const read = number === 0 ? "" : name;
    byAnything.set(name, read).set(number, read);
    byText.set(name, read).set(String(number), read);
  });
  for (const [alias, name] of Object.entries(aliases)) {
    if (!names.includes(name)) continue;
    byAnything.set(alias, name);
    byText.set(alias, name);
  }
  const description = `must be one of ${names.slice(1).join(", ")}`;
  return {
    read(value, reading) {
      const read = (reading.textual ? byText : byAnything).get(value);
      if (substitute !== undefined && reading.lenient && (read === undefined || read === "")) {
        // The unspecified value itself is known, where it has a meaning.
        if (read === undefined || substitute !== names[0]) reading.replaces(value);
        return substitute;
      }
      if (read === undefined) reading.violate(description);
      return read;
    },
    isEmpty: (value) => value === "",
    empty: () => "",
    fill: substitute === undefined ? undefined : () => substitute,
  };
}

function listOf(item: TypeReader): TypeReader {
  return {
    list: true,
    read(value, reading) {
      if (!Array.isArray(value)) {
        reading.violate("must be an array");
        return value;
      }
      if (value.length > reading.maxItems) {
        reading.violate(`must not have more than ${reading.maxItems} items`);
        return value;
      }
      let copy: unknown[] | undefined;
      for (let at = 0; at < value.length; at++) {
        const given: unknown = value[at];
        const violations = reading.violations.length;
        reading.enter(at);
        const read = item.read(given, reading);
        const dropped = reading.violations.length > violations && reading.forgives(violations);
        reading.leave();
        if (copy === undefined && (dropped || read !== given)) copy = value.slice(0, at);
        if (!dropped) copy?.push(read);
      }
      return copy ?? value;
    },
    isEmpty: (value) => Array.isArray(value) && value.length === 0,
    empty: () => [],
  };
}

function mapOf(item: TypeReader): TypeReader {
  return {
    read(value, reading) {
      if (!isObject(value)) {
        reading.violate("must be an object");
        return value;
      }
      const read: Record<string, unknown> = {};
      for (const key of Object.keys(value)) {
        // Assigning this key would set the prototype instead of creating a member.
        if (key === "__proto__") continue;
        reading.enter(key);
        read[key] = item.read(value[key], reading);
        reading.leave();
      }
      return read;
    },
    isEmpty: (value) => isObject(value) && Object.keys(value).length === 0,
    empty: () => ({}),
  };
}

function messageOf(
  rows: readonly FieldRow[],
  typeNamed: (name: string) => TypeReader,
  ids: NonNullable<ProtoTables["ids"]>,
): TypeReader {
  // Of a part, an empty text can stand for missing content; a response must have content.
  const substitute = rows.find(([, type, presence]) => presence === "oneof" && type === "string")?.[0];
  const fields = rows.map(([name, type, presence], at): Field => {
    const reader = typeNamed(type);
    const fillable = presence !== "required" || reader.fill !== undefined;
    const dispensable = presence === "oneof" ? substitute !== undefined : fillable;
    return { name, presence, bit: 1 << at, type: reader, dispensable };
  });
  const bySpelling = new Map<string, Field>();
  fields.forEach((field, at) => {
    bySpelling.set(rows[at]?.[4] ?? snakeCase(field.name), field).set(field.name, field);
  });
  const maskOf = (presence: Presence) =>
    fields.reduce((mask, field) => (field.presence === presence ? mask | field.bit : mask), 0);
  const required = maskOf("required");
  const always = required | maskOf("filled") | maskOf("restored");
  const oneof = maskOf("oneof");
  const oneofNames = fields.filter((field) => field.presence === "oneof").map((field) => field.name);

  return {
    read(value, reading) {
      if (!isObject(value)) {
        reading.violate("must be an object");
        return value;
      }
      let changed: Record<string, unknown> | undefined;
      let seen = 0;
      for (const key in value) {
        const given = value[key];
        const field = bySpelling.get(key);
        if (field === undefined || (given === null && field.type.nullable !== true)) {
          changed ??= copyMembersBefore(value, key);
          continue;
        }
        const violations = reading.violations.length;
        reading.enter(key);
        if ((seen & field.bit) !== 0) reading.violate("is given in both spellings");
        const read = field.type.read(given, reading);
        const unreadable = reading.violations.length > violations && field.dispensable && reading.forgives(violations);
        if (unreadable || isAbsent(field, read, reading)) {
          changed ??= copyMembersBefore(value, key);
        } else {
          seen |= field.bit;
          if (field.presence === "required") violateIfEmpty(field, read, reading);
          if (changed === undefined && (read !== given || key !== field.name)) changed = copyMembersBefore(value, key);
          if (changed !== undefined) changed[field.name] = read;
        }
        reading.leave();
      }
      if (oneof !== 0 && !isOneBit(seen & oneof)) {
        if (substitute === undefined || !reading.fills()) {
          reading.violate(`must have exactly one of ${oneofNames.join(", ")}`);
        } else changed = withOneContent(changed ?? { ...value }, oneofNames, substitute);
      }
      if ((seen & always) === always) return changed ?? value;
      // Something that has nothing of a message is another thing.
      if (reading.lenient && required !== 0 && (seen & required) === 0 && !isOneBit(required)) {
        reading.violate("has none of its required members");
        return value;
      }
      return fillAbsent(fields, seen, changed ?? { ...value }, reading, ids);
    },
    isEmpty: () => false,
    empty: () => ({}),
  };
}

/** Members up to `stop`: all known, canonical and under their own name, or a copy would have been started earlier. */
function copyMembersBefore(value: Readonly<Record<string, unknown>>, stop: string): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const key in value) {
    if (key === stop) break;
    members[key] = value[key];
  }
  return members;
}

function fillAbsent(
  fields: readonly Field[],
  seen: number,
  result: Record<string, unknown>,
  reading: Reading,
  ids: NonNullable<ProtoTables["ids"]>,
): Record<string, unknown> {
  for (const field of fields) {
    if ((seen & field.bit) !== 0) continue;
    const required = field.presence === "required";
    const fills =
      field.presence === "filled" ||
      (field.presence === "restored" && !reading.writing) ||
      (required && reading.tolerant && field.type.list === true);
    if (fills) result[field.name] = field.type.empty();
    else if (required && field.type.fill !== undefined && reading.fills(field.name)) {
      result[field.name] = ids[field.name]?.(result, reading.index) ?? field.type.fill();
    } else if (required) reading.violateMember(field.name, "is required");
  }
  return result;
}

/** Peers that send more than one content mean the first. */
function withOneContent(
  part: Record<string, unknown>,
  contents: readonly string[],
  substitute: string,
): Record<string, unknown> {
  const first = contents.find((name) => name in part) ?? substitute;
  const rest = Object.entries(part).filter(([name]) => !contents.includes(name));
  return { [first]: first in part ? part[first] : "", ...Object.fromEntries(rest) };
}

/** An empty value of a required member is filled in like one that is absent, where that is allowed. */
function isAbsent(field: Field, read: unknown, reading: Reading): boolean {
  const { presence, type } = field;
  if (presence === "implicit" || (reading.writing && presence === "restored")) return type.isEmpty(read);
  return presence === "required" && reading.lenient && type.list !== true && type.isEmpty(read);
}

function violateIfEmpty(field: Field, read: unknown, reading: Reading): void {
  if (!field.type.isEmpty(read) || (reading.tolerant && field.type.list === true)) return;
  reading.violate("must not be empty");
}

function isOneBit(bits: number): boolean {
  return bits !== 0 && (bits & (bits - 1)) === 0;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
