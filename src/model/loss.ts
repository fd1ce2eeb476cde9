/** Something a dialect could not express: dropped entirely, or expressed in another form. */
export interface Loss {
  readonly kind: "dropped" | "bent";
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

/** What a lossy codec returns. */
export interface Lossy<T> {
  readonly value: T;
  readonly losses: readonly Loss[];
}

export const NO_LOSSES: readonly Loss[] = [];
