import type { CheckContext } from "./check-context.ts";
import type { Exchange } from "./exchange-log.ts";
import type { FullResponse } from "./peers/http-client.ts";
import type { Peer } from "./peers/peer.ts";
import type { Binding, RequirementId, Version } from "./requirements.ts";

/** The card as served to clients of one version. */
export interface CardContext {
  readonly version: Version;
  readonly text: string;
  /** The HTTP response with the card; not shown if the card was read from a file. */
  fetch(): Promise<FullResponse>;
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

/** Returns if the server conforms, throws `Failed` or `NotShown` otherwise. */
export interface Check<Context = never> {
  /** Unique, in kebab-case; selects the check on the command line. */
  readonly name: string;
  /** The requirements that hold if the check passes. */
  readonly shows: readonly RequirementId[];
  /** Default: all bindings. */
  readonly bindings?: readonly Binding[];
  readonly run: (context: Context) => Promise<void>;
}

/** A check of the card, of one interface, or of all interfaces of one version. */
export function check<Context>(
  name: string,
  shows: RequirementId | readonly RequirementId[],
  run: Check<Context>["run"],
): Check<Context> {
  return { name, shows: [shows].flat(), run };
}

/** A check of interfaces with these bindings only. */
export function checkOver<Name extends Binding>(
  bindings: readonly Name[],
  name: string,
  shows: RequirementId | readonly RequirementId[],
  run: (context: CheckContext, peer: Extract<Peer, { readonly binding: Name }>) => Promise<void>,
): Check<CheckContext> {
  const overPeer = (context: CheckContext) => run(context, context.peer as Extract<Peer, { readonly binding: Name }>);
  return { ...check(name, shows, overPeer), bindings };
}
