import { abilitiesWithout } from "../../../core/dialects/shared/abilities.ts";

/** What can be asked of a participant of a chat room. */
export const CHAT_PEER_CAN = {
  ...abilitiesWithout("list", "push-create", "push-get", "push-list", "push-delete"),
  replay: false,
};
