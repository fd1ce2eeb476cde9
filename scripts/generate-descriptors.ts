/**
 * Generates the descriptors for server reflection from the tables that encode and decode the messages. They are written
 * to source files, so that a running server needs no library for them. Run by `npm run docs`.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { PROTO_FILE as A2A_V1 } from "../src/core/dialects/a2a-v1/proto/grpc-service.ts";
import { PROTO_FILE as A2A_V03 } from "../src/core/dialects/a2a-v03/proto/grpc-service.ts";
import type { ProtoTables } from "../src/core/dialects/shared/proto/json-codec.ts";
import {
  camelCase,
  type Field,
  fieldsOf,
  importsOf,
  type ProtoFile,
  WELL_KNOWN,
} from "../src/core/dialects/shared/proto/proto-file.ts";
import { HEALTH_TABLES } from "../src/core/server/grpc/services/health.ts";
import { REFLECTION_TABLES } from "../src/core/server/grpc/services/reflection.ts";

/** Paths are relative to the root of the repository. */
export function descriptorFiles(): readonly [path: string, content: string][] {
  return [
    ["src/core/dialects/a2a-v1/proto/descriptor.generated.ts", generatedFile([toDescriptor(A2A_V1)])],
    ["src/core/dialects/a2a-v03/proto/descriptor.generated.ts", generatedFile([toDescriptor(A2A_V03)])],
    [
      "src/core/server/grpc/services/descriptors.generated.ts",
      generatedFile([...WELL_KNOWN_FILES, healthFile(), reflectionFile("v1"), reflectionFile("v1alpha")]),
    ],
  ];
}

function generatedFile(files: readonly FileDescriptorProto[]): string {
  const encoded = files.map((file) => {
    const bytes = toBinary(FileDescriptorProtoSchema, file);
    return `  // ${file.name}\n  "${Buffer.from(bytes).toString("base64")}",\n`;
  });
  return `/** Written by \`npm run docs\`: each a serialised \`FileDescriptorProto\`, in base64. */
export const DESCRIPTORS: readonly string[] = [
${encoded.join("")}];
`;
}

const WELL_KNOWN_FILES: readonly FileDescriptorProto[] = [
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
].map(({ proto }) => proto);

function healthFile(): FileDescriptorProto {
  const types = { request: "HealthCheckRequest", response: "HealthCheckResponse" };
  const file = toDescriptor({
    path: "grpc/health/v1/health.proto",
    package: "grpc.health.v1",
    tables: HEALTH_TABLES,
    oneofs: {},
    service: {
      name: "Health",
      methods: [
        { name: "Check", ...types, streams: false },
        { name: "Watch", ...types, streams: true },
      ],
    },
  });
  // The tables have no enums nested in messages.
  const response = file.messageType.find(({ name }) => name === types.response);
  response?.enumType.push(...file.enumType.splice(0));
  for (const field of response?.field ?? []) field.typeName = `.grpc.health.v1.${types.response}.ServingStatus`;
  return file;
}

function reflectionFile(version: "v1" | "v1alpha"): FileDescriptorProto {
  const types = { request: "ServerReflectionRequest", response: "ServerReflectionResponse" };
  const file = toDescriptor({
    path: `grpc/reflection/${version}/reflection.proto`,
    package: `grpc.reflection.${version}`,
    tables: REFLECTION_TABLES,
    oneofs: { ServerReflectionRequest: "message_request", ServerReflectionResponse: "message_response" },
    service: { name: "ServerReflection", methods: [{ name: "ServerReflectionInfo", ...types, streams: true }] },
  });
  for (const service of file.service) for (const method of service.method) method.clientStreaming = true;
  return file;
}

const PRIMITIVES: Readonly<Record<string, Type | undefined>> = {
  string: Type.STRING,
  bool: Type.BOOL,
  int32: Type.INT32,
  bytes: Type.BYTES,
};

function toDescriptor(file: ProtoFile): FileDescriptorProto {
  const { tables, service } = file;
  const nameOf = (type: string) => (type in WELL_KNOWN ? `.${type}` : `.${file.package}.${type}`);
  return create(FileDescriptorProtoSchema, {
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
  // Each `optional` field has a synthetic oneof, after the real ones.
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
