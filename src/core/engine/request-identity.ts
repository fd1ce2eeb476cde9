import { createHash } from "node:crypto";
import { ProtocolError } from "../model/errors.ts";
import { withoutHops } from "../model/extensions.ts";
import type { CallContext, SendInput } from "../model/operation.ts";
import type { IdempotencyRecord, Scope, TaskHead } from "../store/contract.ts";

/** Whose tasks a call is about: no others exist for it. */
export function toScope(served: { readonly name: string }, call: CallContext): Scope {
  return { agent: served.name, tenant: call.tenant, owner: call.caller.owner };
}

export function isSameScope(one: Scope, other: Scope): boolean {
  return one.agent === other.agent && one.tenant === other.tenant && one.owner === other.owner;
}

export function fromHead(head: TaskHead) {
  const { id, contextId, tenant, owner, dialect, attempt, bytes } = head;
  return { id, contextId, tenant, owner, dialect, attempt, bytes };
}

/**
 * Two sends are the same when their content is, in whatever order of members; how the answer is wanted does not count,
 * nor does the id of the message: in some dialects there is none, and every request gets a new one. Nor do hops: an
 * agent that repeats a send after a restart may have another address.
 */
export function computeFingerprint({ message, metadata, chosenId }: SendInput): string {
  const { messageId: _, ...content } = message;
  return createHash("sha256")
    .update(JSON.stringify([content, withoutHops(metadata), chosenId], sortKeys))
    .digest("base64url");
}

/** A send whose key the store already knows. */
export class DuplicateSend extends Error {
  readonly record: IdempotencyRecord;
  constructor(record: IdempotencyRecord) {
    super("This send was made before.");
    this.record = record;
  }
}

/** The record of an earlier send with the same key, if that was the same send. */
export function requireSameContent(record: IdempotencyRecord, input: SendInput): IdempotencyRecord {
  if (record.fingerprint === computeFingerprint(input)) return record;
  throw new ProtocolError("IDEMPOTENCY_CONFLICT", "This idempotency key was used for another message.");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
