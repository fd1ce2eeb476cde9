/**
 * Something a dialect could not express: dropped entirely, expressed in another form, or moved to another place, where
 * all of it can be read. Or, in an agent's answer, something that was missing or unknown and is filled in.
 */
export interface Loss {
  readonly kind: "dropped" | "bent" | "moved" | "filled";
  /** Where in the model the value stood, e.g. `task.artifacts[0].parts[1].metadata`. */
  readonly path: string;
  readonly reason: string;
}

/** What a dialect always loses, as its documentation lists it. Every loss a codec reports cites one. */
export interface LossRule {
  readonly kind: Loss["kind"];
  /** A path of the model, e.g. `part.metadata`. */
  readonly what: string;
  /** What becomes of it, and why. */
  readonly reason: string;
  /** `encode`: from the model to the wire; `decode`: from the wire to the model. */
  readonly direction: "encode" | "decode";
  /** Where this happens; absent: on every binding of the dialect. */
  readonly bindings?: readonly string[];
}

export function toLoss({ kind, reason }: LossRule, path: string): Loss {
  return { kind, path, reason };
}

/** Those that `strict` refuses: what was moved still arrives. */
export function refusedLosses(losses: readonly Loss[]): readonly Loss[] {
  return losses.filter(({ kind }) => kind !== "moved");
}

/** What a lossy codec returns. */
export interface Lossy<T> {
  readonly value: T;
  readonly losses: readonly Loss[];
}

export const NO_LOSSES: readonly Loss[] = [];
