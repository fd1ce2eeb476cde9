import type { LossRule } from "../../model/loss.ts";
import { LEGACY_LOSSES } from "../shared/legacy/losses.ts";

/** What this dialect has no member for. */
export const LOSSES = {
  ...LEGACY_LOSSES,
  statusMetadata: {
    kind: "dropped",
    what: "statusUpdate.metadata",
    reason: "A change of state is sent as the whole task, which has its own metadata.",
    direction: "encode",
  },
  historyLength: {
    kind: "dropped",
    what: "send.configuration.historyLength",
    reason: "A send is answered with the whole history.",
    direction: "encode",
  },
  pushConfig: {
    kind: "dropped",
    what: "send.configuration.taskPushNotificationConfig",
    reason: "There are no push notifications.",
    direction: "encode",
  },
} as const satisfies Record<string, LossRule>;
