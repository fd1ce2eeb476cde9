import { invalidParams, ProtocolError } from "./errors.ts";
import { isObject, type JsonObject, type JsonValue } from "./json.ts";
import { MAX_TIMER_MS } from "./ports.ts";

/** Extensions of A2A 1.0 that this product defines. */
export const EXTENSIONS = {
  /** Resuming a stream leaves out the snapshot frame. */
  replay: "urn:dragoman:ext:replay:v1",
  /** `messageId` is the key under which a repeated send is recognised. */
  idempotency: "urn:dragoman:ext:idempotency:v1",
  /** How many agents a request came through, which, and how long its caller still waits, in its `metadata`. */
  hops: "urn:dragoman:ext:hops:v1",
  /** Reasoning text of an agent, in the `metadata` of a part: the text itself, or `true` where it is the part's own. */
  reasoning: "urn:dragoman:ext:reasoning:v1",
  /** Which step of a workflow a status message is about, in its `metadata`. */
  workflow: "urn:dragoman:ext:workflow:v1",
  /** On the card of an agent that forwards to another one: the `url` of that one, in its `params`. */
  upstream: "urn:dragoman:ext:upstream:v1",
  /** Tokens that language models read and wrote for a task, in the task's `metadata`. */
  usage: "urn:dragoman:ext:usage:v1",
  /** In the `metadata` of an artifact: the agent has not declared it a result, it was taken for one. */
  unverified: "urn:dragoman:ext:unverified:v1",
} as const;

/**
 * How a request came here through other agents. It travels in the metadata of a request under the extension's URI, so
 * that agents which call each other in a circle are stopped before they work.
 */
export interface Hops {
  /** Calls from agent to agent that led here; 0 for what a person or a program asked for. */
  readonly hops: number;
  /** Who made those calls, the first one first. */
  readonly ancestors: readonly string[];
  /** Names the first of those requests, for what all that follow from it share; absent in what a person asked for. */
  readonly root?: string;
  /** When the caller gives up, in milliseconds since the epoch; absent if it waits until the task ends. */
  readonly deadline?: number;
}

export const NO_HOPS: Hops = { hops: 0, ancestors: [] };

const HOPS_FIELD = `metadata.${EXTENSIONS.hops}`;

/** Reads the metadata of a request; throws INVALID_PARAMS for values that cannot be read. */
export function readHops(metadata: JsonObject | undefined): Hops {
  const value = metadata?.[EXTENSIONS.hops];
  if (value === undefined) return NO_HOPS;
  if (!isObject(value)) throw invalidParams(HOPS_FIELD, "must be an object with hops and ancestors");
  const { hops = 0, ancestors = [], root } = value;
  if (!isCount(hops)) throw invalidParams(`${HOPS_FIELD}.hops`, "must be a number of calls");
  if (!isStringList(ancestors)) throw invalidParams(`${HOPS_FIELD}.ancestors`, "must be a list of strings");
  if (root !== undefined && typeof root !== "string") throw invalidParams(`${HOPS_FIELD}.root`, "must be a string");
  return { hops, ancestors, root };
}

/**
 * When the caller of a request that arrives now gives up. What travels is the time that remains, because clocks differ;
 * undefined if no timer could wait that long. Throws INVALID_PARAMS for values that cannot be read.
 */
export function readDeadline(metadata: JsonObject | undefined, now: number): number | undefined {
  const value = metadata?.[EXTENSIONS.hops];
  const remaining = isObject(value) ? value.remainingMs : undefined;
  if (remaining === undefined) return undefined;
  if (!isCount(remaining)) {
    throw invalidParams(`${HOPS_FIELD}.remainingMs`, "must be a whole number of milliseconds, 0 or more");
  }
  return remaining > MAX_TIMER_MS ? undefined : now + remaining;
}

/**
 * Throws if an agent must not work on a request that came this way. Agents that work in rounds visit each other again
 * and again, so a repeated visit only counts: a loop is what does not end within the limit.
 */
export function checkHopLimit({ hops, ancestors }: Hops, limit: number): void {
  const taken = Math.max(hops, ancestors.length);
  if (taken <= limit) return;
  throw new ProtocolError(
    "UNSUPPORTED_OPERATION",
    `The request came through ${taken} agents, more than the ${limit} allowed.`,
    { metadata: { reason: "AGENT_LOOP", hops: String(taken), limit: String(limit) } },
  );
}

/** What an agent passes on when it calls others; `task` is the one that it works on. */
export function addAncestor({ hops, ancestors, root }: Hops, self: string, task: string): Hops {
  return { hops, ancestors: [...ancestors, self], root: root ?? task };
}

/** For calls that must have ended by then, or before if their caller gives up earlier. */
export function limitHops(hops: Hops, deadline: number | undefined): Hops {
  if (deadline === undefined) return hops;
  return { ...hops, deadline: Math.min(deadline, hops.deadline ?? deadline) };
}

/** The metadata of a request that an agent makes: one call further than the request it works on. */
export function withHops(metadata: JsonObject | undefined, hops: Hops, now: number): JsonObject {
  return { ...metadata, [EXTENSIONS.hops]: encodeHops({ ...hops, hops: hops.hops + 1 }, now) };
}

/** As another process receives them. */
export function encodeHops({ hops, ancestors, root, deadline }: Hops, now: number): JsonObject {
  const came = { hops, ancestors, root };
  if (deadline === undefined) return came;
  return { ...came, remainingMs: Math.max(0, Math.ceil(deadline - now)) };
}

/** Metadata of a request without how it came here. */
export function withoutHops(metadata: JsonObject | undefined): JsonObject | undefined {
  if (metadata?.[EXTENSIONS.hops] === undefined) return metadata;
  const { [EXTENSIONS.hops]: _hops, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function isCount(value: JsonValue): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isStringList(value: JsonValue): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
