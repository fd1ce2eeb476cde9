/** Between the JSON that tests are written in and the objects that protobuf.js reads and writes. */
import { fromStruct, fromValue, type Plain, toStruct, toValue } from "./published-protos.ts";

const STRUCTS: ReadonlySet<string> = new Set(["metadata", "params", "header"]);
const TIMES: ReadonlySet<string> = new Set(["timestamp", "statusTimestampAfter"]);

/** Members that are `null` or undefined are left out, as are those that the schema does not know. */
export function toProto(message: Plain): Plain {
  const members: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(message)) {
    if (name === "data") members[name] = toValue(value);
    else if (value !== undefined && value !== null) members[name] = toProtoMember(name, value);
  }
  return members;
}

function toProtoMember(name: string, value: unknown): unknown {
  if (STRUCTS.has(name)) return toStruct(value as Plain);
  if (TIMES.has(name)) return toTimestamp(String(value));
  if (name === "raw") return Buffer.from(String(value), "base64");
  if (Array.isArray(value)) return value.map((item) => toProtoMember("", item));
  return typeof value === "object" ? toProto(value as Plain) : value;
}

const INSTANT = /^(.*?)(?:\.(\d{1,9}))?Z$/;

function toTimestamp(text: string): Plain {
  const [, whole = "", fraction = ""] = INSTANT.exec(text) ?? [];
  return { seconds: Date.parse(`${whole}Z`) / 1000, nanos: Number(fraction.padEnd(9, "0")) };
}

export function fromProto(message: Plain): Plain {
  return Object.fromEntries(Object.entries(message).map(([name, value]) => [name, fromProtoMember(name, value)]));
}

function fromProtoMember(name: string, value: unknown): unknown {
  if (STRUCTS.has(name)) return fromStruct(value as Plain);
  if (TIMES.has(name)) return fromTimestamp(value as Plain);
  if (name === "data") return fromValue(value as Plain);
  if (Array.isArray(value)) return value.map((item) => fromProtoMember("", item));
  return typeof value === "object" && value !== null ? fromProto(value as Plain) : value;
}

function fromTimestamp({ seconds = 0, nanos = 0 }: Plain): string {
  return new Date(Number(seconds) * 1000 + Number(nanos) / 1e6).toISOString();
}
