/** All that this dialect has no words for. */
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
    reason: "Messages have no extensions.",
    direction: "said",
  },
  referenceTaskIds: {
    kind: "dropped",
    what: "message.referenceTaskIds",
    reason: "Messages refer to no other tasks.",
    direction: "said",
  },
  artifactExtensions: {
    kind: "dropped",
    what: "artifact.extensions",
    reason: "Artifacts have no extensions.",
    direction: "said",
  },
  statusMetadata: {
    kind: "dropped",
    what: "statusUpdate.metadata",
    reason: "A change of state is told by the whole task, which has metadata of its own.",
    direction: "said",
  },
  acceptedOutputModes: {
    kind: "dropped",
    what: "send.configuration.acceptedOutputModes",
    reason: "A send does not say which output it takes.",
    direction: "said",
  },
  returnImmediately: {
    kind: "dropped",
    what: "send.configuration.returnImmediately",
    reason: "A send waits until the task ends or asks something.",
    direction: "said",
  },
  historyLength: {
    kind: "dropped",
    what: "send.configuration.historyLength",
    reason: "A send is answered with the whole history.",
    direction: "said",
  },
  pushConfig: {
    kind: "dropped",
    what: "send.configuration.taskPushNotificationConfig",
    reason: "There are no push notifications.",
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
    what: "call.extensions",
    reason: "There are no extensions to ask for.",
    direction: "said",
  },
} as const satisfies Record<string, LossRule>;
