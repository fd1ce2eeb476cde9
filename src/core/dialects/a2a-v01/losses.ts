import { DROPPED_RECEIVING, LEGACY_LOSSES, lossRules } from "../shared/legacy/losses.ts";

/** What 0.1 has no member for, and what the model has none for. */
export const LOSSES = {
  ...LEGACY_LOSSES,
  ...lossRules(DROPPED_RECEIVING, {
    pushSchemes: [
      "pushConfig.authentication",
      "The model has exactly one scheme: the first is kept, and credentials without a scheme are not.",
    ],
  }),
};
