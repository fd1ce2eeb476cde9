import { createHash } from "node:crypto";
import { ProtocolError } from "../model/errors.ts";
import type { SendInput } from "../model/operation.ts";
import type { IdempotencyRecord } from "../store/contract.ts";

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

/** The record of an earlier send with the same key, if that was the same send. */
export function sameContent(record: IdempotencyRecord, input: SendInput): IdempotencyRecord {
  if (record.fingerprint === fingerprintOf(input)) return record;
  throw new ProtocolError("IDEMPOTENCY_CONFLICT", "This idempotency key was used for another message.");
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
