import { createHash } from "node:crypto";
import type { SendInput } from "../model/operation.ts";

/**
 * Two sends are the same when they say the same, in whatever order of members; how the answer is wanted is no matter,
 * nor is the id of the message: in some dialects there is none, and it is made anew for every request.
 */
export function fingerprintOf({ message, metadata, chosenId }: SendInput): string {
  const { messageId: _made, ...said } = message;
  return createHash("sha256")
    .update(JSON.stringify([said, metadata, chosenId], sorted))
    .digest("base64url");
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
