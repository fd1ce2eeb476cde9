import type { Cell } from "./matrix.ts";
import type { Pair } from "./pairs.ts";

/** A cell that does not simply work, why, and what shows that this is still so. */
export interface Exception {
  readonly scenarios: readonly string[];
  readonly applies: (pair: Pair) => boolean;
  readonly cell: Exclude<Cell, "works">;
  /** How the scenario fails: fits what was found instead of what was expected, or the error's own words. */
  readonly fails: RegExp;
}
