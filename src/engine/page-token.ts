import { createHash } from "node:crypto";
import { invalidParams } from "../model/errors.ts";
import type { ListPosition, ListQuery } from "../store/contract.ts";

/**
 * Page tokens are opaque to callers: a place in the order, bound to the question it belongs to. A token of another
 * question, another caller or no origin at all is refused.
 */
export function toPageToken(position: ListPosition, query: Omit<ListQuery, "after">): string {
  const place = [position.timestamp, position.id, position.stamp, bindingOf(query)];
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

export function fromPageToken(token: string, query: Omit<ListQuery, "after">): ListPosition {
  const place = parse(token);
  if (!Array.isArray(place) || place.length !== 4) throw badToken();
  const [timestamp, id, stamp, binding] = place as unknown[];
  if (typeof timestamp !== "number" || typeof id !== "string" || typeof stamp !== "number") throw badToken();
  if (binding !== bindingOf(query)) throw badToken();
  return { timestamp, id, stamp };
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
  const question = JSON.stringify([agent, tenant, owner, contextId, state, since]);
  return createHash("sha256").update(question).digest("base64url").slice(0, 12);
}

const badToken = () => invalidParams("pageToken", "not a token of this list");
