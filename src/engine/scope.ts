import type { Call } from "../model/operation.ts";
import type { Scope, TaskHead } from "../store/contract.ts";

/** Whose tasks a call is about: nobody else's exist for it. */
export function scopeOf(served: { readonly name: string }, call: Call): Scope {
  return { agent: served.name, tenant: call.tenant, owner: call.caller.owner };
}

export function sameScope(one: Scope, other: Scope): boolean {
  return one.agent === other.agent && one.tenant === other.tenant && one.owner === other.owner;
}

export function adoption(head: TaskHead) {
  const { id, contextId, agent, tenant, owner, dialect, turn } = head;
  return { id, contextId, agent, tenant, owner, dialect, turn };
}
