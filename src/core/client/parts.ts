import { withAnswer } from "../model/answer.ts";
import type { JsonObject, JsonPrimitive, JsonValue } from "../model/json.ts";
import {
  type DataPart,
  isRawPart,
  type Message,
  type Part,
  type RawPart,
  type TextPart,
  textOf as textOfParts,
  type UrlPart,
} from "../model/message.ts";
import type { SendOutcome } from "../model/operation.ts";
import type { Task } from "../model/task.ts";

/** Content of a message: plain text, or parts. */
export type Content = string | readonly Part[];

interface PartOptions {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: JsonObject;
}

/** T if JSON can represent it, including interfaces and optional members. Functions, dates, maps and bigints cannot. */
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

type FileSource = { readonly bytes: Uint8Array } | { readonly url: string };

/** A file by its content or by its URL. */
export function file(source: FileSource & PartOptions): RawPart | UrlPart {
  if ("url" in source) return { ...source };
  const { bytes, ...options } = source;
  return { raw: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"), ...options };
}

export function toParts(content: Content): readonly Part[] {
  return typeof content === "string" ? [{ text: content }] : content;
}

/** The bytes of a file with inline content; undefined for text, data and a file that is referenced by URL. */
export function bytesOf(part: Part): Uint8Array | undefined {
  return isRawPart(part) ? Buffer.from(part.raw, "base64") : undefined;
}

/**
 * The text of an answer: of a message, or of a task's artifacts, separated by an empty line. Without text in the
 * artifacts, the text of the task's status, such as a question to the caller or the reason for a failure; without that,
 * what the agent wrote while it worked.
 */
export function textOf(answer: SendOutcome | Task | Message | readonly Part[]): string {
  if ("task" in answer) return textOf(answer.task);
  if ("message" in answer) return textOf(answer.message);
  if ("parts" in answer) return textOfParts(answer.parts);
  if (!("status" in answer)) return textOfParts(answer);
  const texts = (answer.artifacts ?? []).map(({ parts }) => textOfParts(parts)).filter((text) => text !== "");
  return texts.length > 0 ? texts.join("\n\n") : textOfParts(withAnswer(answer).status.message?.parts ?? []);
}
