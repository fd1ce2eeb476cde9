import type { JsonObject, JsonValue } from "./json.ts";
import type { Part } from "./part.ts";

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
export function inTask(message: Message, taskId: string, contextId: string): Message {
  const { messageId, role, parts, metadata, extensions, referenceTaskIds } = message;
  const placed: { -readonly [K in keyof Message]: Message[K] } = { messageId, contextId, taskId, role, parts };
  if (metadata !== undefined) placed.metadata = metadata;
  if (extensions !== undefined) placed.extensions = extensions;
  if (referenceTaskIds !== undefined) placed.referenceTaskIds = referenceTaskIds;
  return placed;
}

/** Of a message and of a part, beside their content; and of any value in them. */
const MESSAGE_BYTES = 256;
const PART_BYTES = 64;
const VALUE_BYTES = 16;

/** Bytes that a message takes up in memory, roughly. Strings are not looked into, so that it costs next to nothing. */
export function messageSize(message: Message): number {
  const { extensions, metadata, parts, referenceTaskIds } = message;
  let size = MESSAGE_BYTES;
  for (const part of parts) size += partSize(part);
  if (metadata !== undefined) size += jsonSize(metadata);
  if (extensions !== undefined) size += jsonSize(extensions);
  return referenceTaskIds === undefined ? size : size + jsonSize(referenceTaskIds);
}

function partSize(part: Part): number {
  const { filename = "", mediaType = "", metadata } = part;
  const beside = PART_BYTES + filename.length + mediaType.length + (metadata === undefined ? 0 : jsonSize(metadata));
  if ("text" in part) return beside + part.text.length;
  if ("raw" in part) return beside + part.raw.length;
  return beside + ("url" in part ? part.url.length : jsonSize(part.data));
}

/** Many small values take up far more than their JSON. */
export function jsonSize(value: JsonValue): number {
  if (typeof value === "string") return VALUE_BYTES + value.length;
  if (typeof value !== "object" || value === null) return VALUE_BYTES;
  let size = VALUE_BYTES;
  if (Array.isArray(value)) for (const item of value) size += jsonSize(item);
  else for (const [key, member] of Object.entries(value)) size += key.length + jsonSize(member);
  return size;
}
