import { createHash } from "node:crypto";
import { ProtocolError } from "../model/errors.ts";
import type { CallContext, SendInput } from "../model/operation.ts";
import type { IdempotencyRecord, Scope, TaskHead } from "../store/contract.ts";

/** Whose tasks a call is about: nobody else's exist for it. */
export function toScope(served: { readonly name: string }, call: CallContext): Scope {
  return { agent: served.name, tenant: call.tenant, owner: call.caller.owner };
}

export function isSameScope(one: Scope, other: Scope): boolean {
  return one.agent === other.agent && one.tenant === other.tenant && one.owner === other.owner;
}

export function fromHead(head: TaskHead) {
  const { id, contextId, agent, tenant, owner, dialect, turn } = head;
  return { id, contextId, agent, tenant, owner, dialect, turn };
}

/**
 * Two sends are the same when they say the same, in whatever order of members; how the answer is wanted is no matter,
 * nor is the id of the message: in some dialects there is none, and it is made anew for every request.
 */
export function computeFingerprint({ message, metadata, chosenId }: SendInput): string {
  const { messageId: _made, ...said } = message;
  return createHash("sha256")
    .update(JSON.stringify([said, metadata, chosenId], sortKeys))
    .digest("base64url");
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
