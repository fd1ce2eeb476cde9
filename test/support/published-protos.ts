/** The published `.proto` files as a stranger reads them: with protobuf.js, and none of our codecs. */
import { fileURLToPath } from "node:url";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";

export type Plain = Readonly<Record<string, unknown>>;

export interface PublishedMethod {
  readonly path: string;
  readonly streams: boolean;
  encode(request: Plain): Buffer;
  decode(answer: Buffer): Plain;
}

export type PublishedService = Readonly<Record<string, PublishedMethod>>;

const includeDirs = [fileURLToPath(new URL("../../proto", import.meta.url))];
const OPTIONS = { includeDirs, enums: String, bytes: String, longs: Number, defaults: false, oneofs: false } as const;

function publishedService(file: string, name: string): PublishedService {
  const methods = loadSync(file, OPTIONS)[name] as ServiceDefinition;
  return Object.fromEntries(
    Object.entries(methods).map(([method, { path, responseStream, requestSerialize, responseDeserialize }]) => [
      method,
      {
        path,
        streams: responseStream,
        encode: requestSerialize as (request: Plain) => Buffer,
        decode: responseDeserialize as (answer: Buffer) => Plain,
      },
    ]),
  );
}

export const A2A_V1_SERVICE = publishedService("lf/a2a/v1/a2a.proto", "lf.a2a.v1.A2AService");
export const A2A_V03_SERVICE = publishedService("a2a/v1/a2a.proto", "a2a.v1.A2AService");

/** A JSON object as a `google.protobuf.Struct`. */
export function toStruct(object: Plain): Plain {
  const fields: Record<string, Plain> = Object.create(null);
  for (const [name, member] of Object.entries(object)) if (member !== undefined) fields[name] = toValue(member);
  return { fields };
}

/** Any JSON as a `google.protobuf.Value`. */
export function toValue(value: unknown): Plain {
  if (value === null || value === undefined) return { nullValue: 0 };
  if (typeof value === "number") return { numberValue: value };
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(toValue) } };
  return { structValue: toStruct(value as Plain) };
}

export function fromStruct({ fields = {} }: Plain): Plain {
  return Object.fromEntries(Object.entries(fields as Plain).map(([name, value]) => [name, fromValue(value as Plain)]));
}

export function fromValue(value: Plain): unknown {
  const [kind] = Object.keys(value);
  switch (kind) {
    case "structValue":
      return fromStruct(value.structValue as Plain);
    case "listValue":
      return ((value.listValue as { readonly values?: readonly Plain[] }).values ?? []).map(fromValue);
    case "numberValue":
    case "stringValue":
    case "boolValue":
      return value[kind];
    default:
      return null;
  }
}
