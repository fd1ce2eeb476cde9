import { createHash } from "node:crypto";
import type { SendInput } from "../model/operation.ts";

/** Two sends are the same when they say the same, in whatever order of members; how the answer is wanted is no matter. */
export function fingerprintOf({ message, metadata }: SendInput): string {
  return createHash("sha256")
    .update(JSON.stringify([message, metadata], sorted))
    .digest("base64url");
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
