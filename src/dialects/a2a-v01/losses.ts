/** All that 0.1 has no words for, and all it says that the model has none for. */
import type { LossRule } from "../../model/loss.ts";
import { CARD_LOSSES } from "../shared/legacy/card.ts";
import { PART_LOSSES } from "../shared/legacy/parts.ts";
import { STATE_LOSSES } from "../shared/legacy/states.ts";

export const LOSSES = {
  ...PART_LOSSES,
  ...STATE_LOSSES,
  ...CARD_LOSSES,
  messageAsTask: {
    kind: "bent",
    what: "send.message, stream.message",
    reason:
      "Every send is answered by a task: a message without one is told as the status message of a completed task.",
    direction: "said",
  },
  messageExtensions: {
    kind: "dropped",
    what: "message.extensions",
    reason: "0.1 has no extensions.",
    direction: "said",
  },
  referenceTaskIds: {
    kind: "dropped",
    what: "message.referenceTaskIds",
    reason: "Messages of 0.1 refer to no other tasks.",
    direction: "said",
  },
  artifactExtensions: {
    kind: "dropped",
    what: "artifact.extensions",
    reason: "0.1 has no extensions.",
    direction: "said",
  },
  acceptedOutputModes: {
    kind: "dropped",
    what: "send.configuration.acceptedOutputModes",
    reason: "A send of 0.1 does not say which output it takes.",
    direction: "said",
  },
  returnImmediately: {
    kind: "dropped",
    what: "send.configuration.returnImmediately",
    reason: "A send of 0.1 waits until the task ends or asks something.",
    direction: "said",
  },
  tenant: {
    kind: "dropped",
    what: "call.tenant",
    reason: "0.1 has no tenants: the agent is whichever the address stands for.",
    direction: "said",
  },
  callExtensions: {
    kind: "dropped",
    what: "call.extensions",
    reason: "0.1 has no extensions to ask for.",
    direction: "said",
  },
  pushSchemes: {
    kind: "dropped",
    what: "pushConfig.authentication",
    reason: "The model has exactly one scheme: the first is kept, and credentials without a scheme are not.",
    direction: "heard",
  },
} as const satisfies Record<string, LossRule>;
