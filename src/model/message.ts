import type { JsonObject } from "./json.ts";
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
