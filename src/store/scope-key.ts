import type { Scope } from "./contract.ts";

/** Lengths first, so that no two scopes share a key whatever characters they contain. */
export function scopeKey({ agent, tenant, owner }: Scope): string {
  return `${agent.length}:${tenant.length}:${agent}${tenant}${owner}`;
}
