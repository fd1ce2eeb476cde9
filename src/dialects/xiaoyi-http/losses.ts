/** Everything that this dialect cannot express. */
import type { LossRule } from "../../model/loss.ts";
import { LOSSES as SHARED } from "../xiaoyi/abilities.ts";

export const LOSSES = {
  ...SHARED,
  tenant: {
    kind: "dropped",
    what: "call.tenant",
    reason: "There are no tenants: the agent is whichever the address stands for.",
    direction: "encode",
  },
  callExtensions: {
    kind: "dropped",
    what: "call.extensions, call.idempotencyKey",
    reason: "There are no extensions to ask for, and no keys that make a message safe to repeat.",
    direction: "encode",
  },
  foreignId: {
    kind: "bent",
    what: "event.taskId",
    reason: "A stream answers one message: its frames are those of that task, whatever the agent calls it.",
    direction: "decode",
  },
} as const satisfies Record<string, LossRule>;
