/** A `.proto` file as reflection shows it. Apart, because few servers are ever asked and the library takes time to load. */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import type { ProtoTables } from "./json-codec.ts";
import { camelCase, type Field, fieldsOf, importsOf, type ProtoFile, WELL_KNOWN } from "./proto-file.ts";

const PRIMITIVES: Readonly<Record<string, Type | undefined>> = {
  string: Type.STRING,
  bool: Type.BOOL,
  int32: Type.INT32,
  bytes: Type.BYTES,
};

/** A serialised `FileDescriptorProto`. */
export function toDescriptor(file: ProtoFile): Uint8Array {
  const { tables, service } = file;
  const nameOf = (type: string) => (type in WELL_KNOWN ? `.${type}` : `.${file.package}.${type}`);
  const descriptor = create(FileDescriptorProtoSchema, {
    name: file.path,
    package: file.package,
    syntax: "proto3",
    dependency: [...importsOf(file)],
    messageType: Object.keys(tables.messages).map((name) =>
      messageDescriptor(name, fieldsOf(file, name), `.${file.package}`, nameOf, tables),
    ),
    enumType: Object.entries(tables.enums).map(([name, values]) =>
      create(EnumDescriptorProtoSchema, { name, value: values.map((value, number) => ({ name: value, number })) }),
    ),
    service: [
      {
        name: service.name,
        method: service.methods.map(({ name, request, response, streams }) => ({
          name,
          inputType: nameOf(request),
          outputType: nameOf(response),
          serverStreaming: streams,
        })),
      },
    ],
  });
  return toBinary(FileDescriptorProtoSchema, descriptor);
}

function messageDescriptor(
  name: string,
  fields: readonly Field[],
  scope: string,
  nameOf: (type: string) => string,
  tables: ProtoTables,
): DescriptorProto {
  const typeOf = (type: string): { type: Type; typeName?: string } => {
    const primitive = PRIMITIVES[type];
    if (primitive !== undefined) return { type: primitive };
    return { type: type in tables.enums ? Type.ENUM : Type.MESSAGE, typeName: nameOf(type) };
  };
  const oneofs = [...new Set(fields.flatMap(({ oneof }) => oneof ?? []))];
  // The keyword `optional` is a oneof of its own, after the real ones.
  for (const field of fields) if (field.optional) oneofs.push(`_${field.name}`);
  const entryName = (field: Field) => `${upperFirst(camelCase(field.name))}Entry`;
  return create(DescriptorProtoSchema, {
    name,
    field: fields.map((field) => {
      const oneof = field.optional ? `_${field.name}` : field.oneof;
      return create(FieldDescriptorProtoSchema, {
        name: field.name,
        jsonName: field.jsonName,
        number: field.number,
        label: field.repeated || field.map ? Label.REPEATED : Label.OPTIONAL,
        ...(field.map ? { type: Type.MESSAGE, typeName: `${scope}.${name}.${entryName(field)}` } : typeOf(field.type)),
        ...(oneof === undefined ? {} : { oneofIndex: oneofs.indexOf(oneof) }),
        ...(field.optional ? { proto3Optional: true } : {}),
      });
    }),
    oneofDecl: oneofs.map((oneof) => ({ name: oneof })),
    nestedType: fields
      .filter(({ map }) => map)
      .map((field) => ({
        name: entryName(field),
        field: [
          { name: "key", jsonName: "key", number: 1, label: Label.OPTIONAL, type: Type.STRING },
          { name: "value", jsonName: "value", number: 2, label: Label.OPTIONAL, ...typeOf(field.type) },
        ],
        options: { mapEntry: true },
      })),
  });
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
