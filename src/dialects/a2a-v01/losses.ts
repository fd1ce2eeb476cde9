import type { LossRule } from "../../model/loss.ts";
import { LEGACY_LOSSES } from "../shared/legacy/losses.ts";

/** What 0.1 has no member for, and what the model has none for. */
export const LOSSES = {
  ...LEGACY_LOSSES,
  pushSchemes: {
    kind: "dropped",
    what: "pushConfig.authentication",
    reason: "The model has exactly one scheme: the first is kept, and credentials without a scheme are not.",
    direction: "decode",
  },
} as const satisfies Record<string, LossRule>;
