import type { JsonObject, JsonValue, Writable } from "./json.ts";

interface PartCommon {
  readonly metadata?: JsonObject;
  readonly filename?: string;
  readonly mediaType?: string;
}

export interface TextPart extends PartCommon {
  readonly text: string;
}
/** `raw` is standard base64 with padding, as JSON carries bytes. */
export interface RawPart extends PartCommon {
  readonly raw: string;
}
export interface UrlPart extends PartCommon {
  readonly url: string;
}
/** `data` may be any JSON value, `null` included: presence of the member is what counts. */
export interface DataPart extends PartCommon {
  readonly data: JsonValue;
}

/** Exactly one of `text`, `raw`, `url`, `data`; there is no discriminator on the wire. */
export type Part = TextPart | RawPart | UrlPart | DataPart;

export const isTextPart = (part: Part): part is TextPart => "text" in part;
export const isRawPart = (part: Part): part is RawPart => "raw" in part;
export const isUrlPart = (part: Part): part is UrlPart => "url" in part;
export const isDataPart = (part: Part): part is DataPart => "data" in part;

/** A text part with nothing beside its text: two of them in a row can become one without losing anything. */
export function isPlainText(part: Part): part is TextPart {
  return isTextPart(part) && part.metadata === undefined && part.filename === undefined && part.mediaType === undefined;
}

/** The text of all text parts, one per line. */
export function textOf(parts: readonly Part[]): string {
  const only = parts[0];
  if (parts.length === 1 && only !== undefined) return isTextPart(only) ? only.text : "";
  return parts
    .filter(isTextPart)
    .map((part) => part.text)
    .join("\n");
}

export const ROLES = ["ROLE_USER", "ROLE_AGENT"] as const;
export type Role = (typeof ROLES)[number];

export interface Message {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

/** The same message, placed in a task. Built member by member for the reason given at `withParts`. */
export function placeInTask(message: Message, taskId: string, contextId: string): Message {
  const { messageId, role, parts, metadata, extensions, referenceTaskIds } = message;
  const placed: Writable<Message> = { messageId, contextId, taskId, role, parts };
  if (metadata !== undefined) placed.metadata = metadata;
  if (extensions !== undefined) placed.extensions = extensions;
  if (referenceTaskIds !== undefined) placed.referenceTaskIds = referenceTaskIds;
  return placed;
}
