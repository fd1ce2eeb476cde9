/** Everything that this dialect cannot express. */
import { lossRule, LOSSES as SHARED } from "./abilities.ts";

export const LOSSES = {
  ...SHARED,
  tenant: lossRule("dropped", "call.tenant", "There are no tenants: the agent is whichever the address stands for."),
  callExtensions: lossRule(
    "dropped",
    "call.extensions, call.idempotencyKey",
    "There are no extensions to ask for, and no keys that make a message safe to repeat.",
  ),
  foreignId: lossRule(
    "bent",
    "event.taskId",
    "A stream answers one message: its frames are those of that task, whatever the agent calls it.",
    "decode",
  ),
};
