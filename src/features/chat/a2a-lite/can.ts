import { abilitiesWithout } from "../../../core/dialects/shared/abilities.ts";

/** Progress is posted, so a task can be followed from its beginning; its present state cannot be asked for. */
export const can = {
  ...abilitiesWithout(
    "get",
    "list",
    "subscribe",
    "push-create",
    "push-get",
    "push-list",
    "push-delete",
    "extended-card",
  ),
  replay: false,
  metadata: false,
};

/** What can be asked of a participant of a chat room. */
export const PARTICIPANT_CAN = {
  ...abilitiesWithout("list", "push-create", "push-get", "push-list", "push-delete"),
  replay: false,
};
