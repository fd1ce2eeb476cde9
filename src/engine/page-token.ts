import { createHash } from "node:crypto";
import { invalidParams } from "../model/errors.ts";
import type { ListPosition, ListQuery, Scope } from "../store/contract.ts";

/**
 * Page tokens are opaque to callers: a place in the order, bound to the question it belongs to. A token of another
 * question, another caller or no origin at all is refused.
 */
export function toPageToken(position: ListPosition, query: Omit<ListQuery, "after">): string {
  return toToken([position.timestamp, position.id, position.stamp, bindingOf(query)]);
}

export function fromPageToken(token: string, query: Omit<ListQuery, "after">): ListPosition {
  const [timestamp, id, stamp, binding] = fromToken(token, 4);
  if (typeof timestamp !== "number" || typeof id !== "string" || typeof stamp !== "number") throw badToken();
  if (binding !== bindingOf(query)) throw badToken();
  return { timestamp, id, stamp };
}

/** Of a list of one task's push configs, which is in the order of creation. */
export function toPushPageToken(place: number, scope: Scope, taskId: string): string {
  return toToken([place, pushBindingOf(scope, taskId)]);
}

export function fromPushPageToken(token: string, scope: Scope, taskId: string): number {
  const [place, binding] = fromToken(token, 2);
  if (!Number.isSafeInteger(place) || binding !== pushBindingOf(scope, taskId)) throw badToken();
  return place as number;
}

function toToken(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

function fromToken(token: string, length: number): readonly unknown[] {
  const place = parse(token);
  if (!Array.isArray(place) || place.length !== length) throw badToken();
  return place;
}

function parse(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
  } catch {
    throw badToken();
  }
}

function bindingOf(query: Omit<ListQuery, "after">): string {
  const { agent, tenant, owner, contextId, state, since } = query;
  return digestOf([agent, tenant, owner, contextId, state, since]);
}

function pushBindingOf({ agent, tenant, owner }: Scope, taskId: string): string {
  return digestOf(["push", agent, tenant, owner, taskId]);
}

function digestOf(question: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(question)).digest("base64url").slice(0, 12);
}

const badToken = () => invalidParams("pageToken", "not a token of this list");
