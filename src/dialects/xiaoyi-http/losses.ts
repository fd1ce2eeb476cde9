/** All that this dialect has no words for. */
import type { LossRule } from "../../model/loss.ts";
import { LOSSES as SHARED } from "../xiaoyi/losses.ts";

export const LOSSES = {
  ...SHARED,
  userMessageMembers: {
    kind: "dropped",
    what: "message.metadata, message.extensions, message.referenceTaskIds of a user",
    reason: "What a user says has an id, a role and parts; of metadata, only the platform's variables and login.",
    direction: "said",
  },
  configuration: {
    kind: "dropped",
    what: "send.configuration",
    reason: "A message says nothing about how it is to be answered: always by a stream, to its end.",
    direction: "said",
  },
  requestMetadata: {
    kind: "dropped",
    what: "send.metadata, cancel.metadata",
    reason: "Requests have no metadata.",
    direction: "said",
  },
  tenant: {
    kind: "dropped",
    what: "call.tenant",
    reason: "There are no tenants: the agent is whichever the address stands for.",
    direction: "said",
  },
  callExtensions: {
    kind: "dropped",
    what: "call.extensions, call.idempotencyKey",
    reason: "There are no extensions to ask for, and no keys that make a message safe to repeat.",
    direction: "said",
  },
} as const satisfies Record<string, LossRule>;
