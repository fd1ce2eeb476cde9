import { isObject } from "../model/json.ts";
import type { CheckContext } from "./check-context.ts";
import type { Exchange, ExchangeLog } from "./exchange-log.ts";
import type { Fields } from "./json.ts";
import type { FullResponse } from "./peers/http-client.ts";
import type { Binding, RequirementId, Version } from "./requirements.ts";

/** The card as served to clients of one version. */
export interface CardContext {
  readonly version: Version;
  readonly log: ExchangeLog;
  /** Fetches the card over HTTP; undefined if it was read from a file. */
  fetch(): Promise<FullResponse | undefined>;
  readonly text: string;
}

/** The HTTP response with the card; not shown if the card was read from a file. */
export async function fetchCard(context: CardContext): Promise<FullResponse> {
  return (await context.fetch()) ?? notShown("the card came from a file");
}

export function parseCard(context: CardContext): Fields {
  let value: unknown;
  try {
    value = JSON.parse(context.text);
  } catch {
    fail("the card is not JSON");
  }
  return isObject(value) ? value : fail("the card is not a JSON object");
}

/** The server violates the requirement. */
export class Failed extends Error {
  override readonly name = "Failed";
  /** The exchanges that show it; default: the last ones. */
  readonly evidence: readonly Exchange[] | undefined;

  constructor(message: string, evidence?: readonly Exchange[]) {
    super(message);
    this.evidence = evidence;
  }
}

/** The server could not be brought into a state in which the requirement can be tested. */
export class NotShown extends Error {
  override readonly name = "NotShown";
}

/** No response, or one that is invalid for the binding. In a check it is a failure. */
export class PeerError extends Error {
  override readonly name = "PeerError";
}

export function fail(text: string): never {
  throw new Failed(text);
}

export function notShown(reason: string): never {
  throw new NotShown(reason);
}

export function ensure(holds: boolean, otherwise: string): asserts holds {
  if (!holds) fail(otherwise);
}

interface CheckBase {
  /** Unique, in kebab-case; selects the check on the command line. */
  readonly name: string;
  /** The requirements that hold if the check passes. */
  readonly shows: readonly RequirementId[];
}

/** A check of one interface. Returns if the server conforms, throws `Failed` or `NotShown` otherwise. */
export interface InterfaceCheck extends CheckBase {
  /** Default: all bindings. */
  readonly bindings?: readonly Binding[];
  readonly run: (context: CheckContext) => Promise<void>;
}

/** A check of the card, without calling the agent. */
export interface CardCheck extends CheckBase {
  readonly run: (context: CardContext) => Promise<void>;
}

/** A check that compares the interfaces of one version. */
export interface CrossCheck extends CheckBase {
  readonly run: (contexts: readonly CheckContext[]) => Promise<void>;
}

export type Check = InterfaceCheck | CardCheck | CrossCheck;
