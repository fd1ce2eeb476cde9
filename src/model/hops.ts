import { invalidParams, ProtocolError } from "./errors.ts";
import { EXTENSIONS } from "./extensions.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/**
 * How a request came here through other agents. It travels in the metadata of a request under the extension's URI, so
 * that agents which call each other in a circle are stopped before they work.
 */
export interface Hops {
  /** Calls from agent to agent that led here; 0 for what a person or a program asked for. */
  readonly hops: number;
  /** Who made those calls, the first one first. */
  readonly ancestors: readonly string[];
}

export const NO_HOPS: Hops = { hops: 0, ancestors: [] };

const FIELD = `metadata.${EXTENSIONS.hops}`;

/** What the metadata of a request says; throws INVALID_PARAMS for what says nothing that can be understood. */
export function hopsIn(metadata: JsonObject | undefined): Hops {
  const value = metadata?.[EXTENSIONS.hops];
  if (value === undefined) return NO_HOPS;
  if (!isObject(value)) throw invalidParams(FIELD, "must be an object with hops and ancestors");
  const { hops = 0, ancestors = [] } = value;
  if (typeof hops !== "number" || !Number.isSafeInteger(hops) || hops < 0) {
    throw invalidParams(`${FIELD}.hops`, "must be a number of calls");
  }
  if (!isTexts(ancestors)) throw invalidParams(`${FIELD}.ancestors`, "must be a list of texts");
  return { hops, ancestors };
}

/**
 * Throws if an agent must not work on a request that came this way. Agents that work in rounds visit each other again
 * and again, so a repeated visit only counts: a loop is what does not end within the limit.
 */
export function refuseLoop({ hops, ancestors }: Hops, limit: number): void {
  const taken = Math.max(hops, ancestors.length);
  if (taken <= limit) return;
  throw new ProtocolError(
    "UNSUPPORTED_OPERATION",
    `The request came through ${taken} agents, more than the ${limit} allowed.`,
    { metadata: { reason: "AGENT_LOOP", hops: String(taken), limit: String(limit) } },
  );
}

/** What an agent passes on when it calls others. */
export function throughAgent({ hops, ancestors }: Hops, self: string): Hops {
  return { hops, ancestors: [...ancestors, self] };
}

/** The metadata of a request that an agent makes: one call further than the request it works on. */
export function withHops(metadata: JsonObject | undefined, { hops, ancestors }: Hops): JsonObject {
  return { ...metadata, [EXTENSIONS.hops]: { hops: hops + 1, ancestors } };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: JsonValue): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
