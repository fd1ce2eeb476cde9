/** How a check ends other than by passing. */
import type { Exchange } from "./evidence.ts";

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
export class PeerFault extends Error {
  override readonly name = "PeerFault";
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
