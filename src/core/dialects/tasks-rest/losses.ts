import { DROPPED_SENDING, LEGACY_LOSSES, lossRules } from "../shared/legacy/losses.ts";

/** What this dialect has no member for. */
export const LOSSES = {
  ...LEGACY_LOSSES,
  ...lossRules(DROPPED_SENDING, {
    statusMetadata: [
      "statusUpdate.metadata",
      "A change of state is sent as the whole task, which has its own metadata.",
    ],
    historyLength: ["send.configuration.historyLength", "A send is answered with the whole history."],
    pushConfig: ["send.configuration.taskPushNotificationConfig", "There are no push notifications."],
  }),
};
