import { createHash } from "node:crypto";

/**
 * An id for something a peer gave none to, made of what it is: the same thing heard twice has the same id, and reading
 * stays a pure function.
 */
export function derivedId(prefix: string, content: unknown): string {
  return `${prefix}-${createHash("sha256").update(JSON.stringify(content)).digest("base64url").slice(0, 16)}`;
}
