import type { JsonObject, JsonPrimitive, JsonValue } from "../model/json.ts";
import type { DataPart, Part, RawPart, TextPart, UrlPart } from "../model/part.ts";

/** What an agent says: plain text, or parts. */
export type Content = string | readonly Part[];

export interface PartOptions {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: JsonObject;
}

/** T if JSON can carry it, interfaces and optional members included. Functions, dates, maps and bigints cannot. */
export type Jsonable<T> = T extends JsonPrimitive | JsonValue
  ? T
  : T extends bigint | symbol | ((...values: never[]) => unknown)
    ? never
    : T extends object
      ? { readonly [K in keyof T]: Jsonable<Exclude<T[K], undefined>> | Extract<T[K], undefined> }
      : never;

export function text(value: string, options?: PartOptions): TextPart {
  return options === undefined ? { text: value } : { text: value, ...options };
}

export function data<T>(value: T & Jsonable<T>, options?: PartOptions): DataPart {
  const json = value as JsonValue;
  return options === undefined ? { data: json } : { data: json, ...options };
}

export type FileSource = { readonly bytes: Uint8Array } | { readonly url: string };

/** A file by its content or by its address. */
export function file(source: FileSource & PartOptions): RawPart | UrlPart {
  if ("url" in source) return { ...source };
  const { bytes, ...options } = source;
  return { raw: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"), ...options };
}

export function toParts(content: Content): readonly Part[] {
  return typeof content === "string" ? [{ text: content }] : content;
}
