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
