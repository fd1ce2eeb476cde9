/** Renders a service and its messages as a `.proto` file. */
import { type FieldRow, type ProtoTables, snakeCase } from "./json-codec.ts";
import type { ScalarName } from "./json-reading.ts";

export interface ProtoFile {
  /** Import path. */
  readonly path: string;
  readonly package: string;
  readonly tables: ProtoTables;
  /** Oneof names by message, for messages with a oneof. */
  readonly oneofs: Readonly<Record<string, string>>;
  readonly service: { readonly name: string; readonly methods: readonly ProtoMethod[] };
}

interface ProtoMethod {
  readonly name: string;
  readonly request: string;
  readonly response: string;
  readonly streams: boolean;
}

export const WELL_KNOWN = {
  "google.protobuf.Empty": "google/protobuf/empty.proto",
  "google.protobuf.Struct": "google/protobuf/struct.proto",
  "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
  "google.protobuf.Value": "google/protobuf/struct.proto",
} as const;

const SCALAR_TYPES = {
  string: "string",
  bool: "bool",
  int32: "int32",
  length: "int32",
  pageSize: "int32",
  bytes: "bytes",
  timestamp: "google.protobuf.Timestamp",
  struct: "google.protobuf.Struct",
  value: "google.protobuf.Value",
} as const satisfies Record<ScalarName, string>;

const PRIMITIVES: ReadonlySet<string> = new Set(["string", "bool", "int32", "bytes"]);

export interface Field {
  readonly name: string;
  readonly jsonName: string;
  readonly number: number;
  readonly type: string;
  readonly repeated: boolean;
  readonly map: boolean;
  readonly oneof: string | undefined;
  /** Has the `optional` keyword: an unset scalar differs from its default. */
  readonly optional: boolean;
}

export function fieldsOf(file: ProtoFile, message: string): readonly Field[] {
  const rows = file.tables.messages[message] ?? [];
  return rows.map((row) => toField(row, file.oneofs[message])).sort((one, other) => one.number - other.number);
}

function toField([jsonName, type, presence, number, protoName]: FieldRow, oneof: string | undefined): Field {
  const repeated = type.endsWith("[]");
  const map = type.startsWith("map<");
  const single = repeated ? type.slice(0, -2) : map ? type.slice(4, -1) : type;
  const named = SCALAR_TYPES[single as ScalarName] ?? single;
  return {
    name: protoName ?? snakeCase(jsonName),
    jsonName,
    number,
    type: named,
    repeated,
    map,
    // Some tables declare the members of a oneof as optional, so that unknown kinds decode as none.
    oneof: presence === "oneof" || (presence === "optional" && !(named in WELL_KNOWN)) ? oneof : undefined,
    optional: presence === "optional" && PRIMITIVES.has(named),
  };
}

/** The dependencies of the file, sorted by name. */
export function importsOf(file: ProtoFile): readonly string[] {
  const used = new Set<string>();
  const use = (type: string) => {
    if (type in WELL_KNOWN) used.add(WELL_KNOWN[type as keyof typeof WELL_KNOWN]);
  };
  for (const message of Object.keys(file.tables.messages)) for (const { type } of fieldsOf(file, message)) use(type);
  for (const { response } of file.service.methods) use(response);
  return [...used].sort();
}

const HEADER = "// Generated from the field tables of the dialect by `npm run docs`; do not edit.";

export function toProtoText(file: ProtoFile): string {
  const { tables, service } = file;
  const blocks = [
    `${HEADER}\nsyntax = "proto3";\n\npackage ${file.package};`,
    importsOf(file)
      .map((path) => `import "${path}";`)
      .join("\n"),
    block(`service ${service.name}`, service.methods.map(methodText)),
    ...Object.entries(tables.enums).map(([name, values]) =>
      block(
        `enum ${name}`,
        values.map((value, number) => `  ${value} = ${number};`),
      ),
    ),
    ...Object.keys(tables.messages).map((name) => block(`message ${name}`, messageLines(fieldsOf(file, name)))),
  ];
  return `${blocks.join("\n\n")}\n`;
}

function block(head: string, lines: readonly string[]): string {
  return lines.length === 0 ? `${head} {}` : `${head} {\n${lines.join("\n")}\n}`;
}

function methodText({ name, request, response, streams }: ProtoMethod): string {
  return `  rpc ${name}(${request}) returns (${streams ? "stream " : ""}${response});`;
}

function messageLines(fields: readonly Field[]): string[] {
  const lines: string[] = [];
  const opened = new Set<string>();
  for (const field of fields) {
    if (field.oneof === undefined) {
      lines.push(`  ${fieldText(field)}`);
    } else if (!opened.has(field.oneof)) {
      opened.add(field.oneof);
      const members = fields.filter(({ oneof }) => oneof === field.oneof).map((member) => `    ${fieldText(member)}`);
      lines.push(`  oneof ${field.oneof} {`, ...members, "  }");
    }
  }
  return lines;
}

function fieldText({ name, jsonName, number, type, repeated, map, optional }: Field): string {
  const kind = map ? `map<string, ${type}>` : `${repeated ? "repeated " : optional ? "optional " : ""}${type}`;
  const json = camelCase(name) === jsonName ? "" : ` [json_name = "${jsonName}"]`;
  return `${kind} ${name} = ${number}${json};`;
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
