import { isObject } from "../model/json.ts";
import type { CheckContext } from "./check-context.ts";
import type { Exchange, ExchangeLog } from "./exchange-log.ts";
import type { Fields } from "./json.ts";
import type { FullResponse } from "./peers/http-client.ts";
import type { Binding, RequirementId, Version } from "./requirements/index.ts";

/** The card as readers of one version get it. */
export interface CardContext {
  readonly version: Version;
  readonly log: ExchangeLog;
  /** The card over HTTP; undefined if it came from a file. */
  fetch(): Promise<FullResponse | undefined>;
  readonly text: string;
}

/** The answer with the card, where there is one. */
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

/** How a check ends other than by passing. */

/** The server does not do what the requirement says. */
export class Failed extends Error {
  override readonly name = "Failed";
  /** Where it was seen, if not in the last exchanges. */
  readonly evidence: readonly Exchange[] | undefined;

  constructor(message: string, evidence?: readonly Exchange[]) {
    super(message);
    this.evidence = evidence;
  }
}

/** The server could not be brought to where the requirement can be seen. */
export class NotShown extends Error {
  override readonly name = "NotShown";
}

/** No answer, or one that is not of the binding. In a check it is a failure. */
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
  /** Unique, in kebab-case: people ask for a check by it. */
  readonly name: string;
  /** The requirements that are shown to hold when it passes. */
  readonly shows: readonly RequirementId[];
}

/** Something to try on one interface. Returns when the server does as it should; see `outcome.ts` for the rest. */
export interface InterfaceCheck extends CheckBase {
  /** Absent: in every binding. */
  readonly bindings?: readonly Binding[];
  readonly run: (context: CheckContext) => Promise<void>;
}

/** Something about the card, without a call. */
export interface CardCheck extends CheckBase {
  readonly run: (context: CardContext) => Promise<void>;
}

/** Something that compares the interfaces of one version. */
export interface CrossCheck extends CheckBase {
  readonly run: (contexts: readonly CheckContext[]) => Promise<void>;
}

export type Check = InterfaceCheck | CardCheck | CrossCheck;
