/** Something a dialect could not say: dropped entirely, or said in another form. */
export interface Loss {
  readonly kind: "dropped" | "bent";
  /** Where in the model the value stood, e.g. `task.artifacts[0].parts[1].metadata`. */
  readonly path: string;
  readonly reason: string;
}

/** What a lossy codec returns. */
export interface Lossy<T> {
  readonly value: T;
  readonly losses: readonly Loss[];
}

export const NO_LOSSES: readonly Loss[] = [];
