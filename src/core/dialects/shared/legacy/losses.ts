/** What dialects older than 0.2 have no member for. */
import type { LossRule } from "../../../model/loss.ts";
import { RESPONSE_LOSSES } from "../responses.ts";

/** Rules of the same kind, each as what is lost and why. */
export function lossRules<Name extends string>(
  rule: Pick<LossRule, "kind" | "direction" | "bindings">,
  rows: Readonly<Record<Name, readonly [what: string, reason: string]>>,
): Readonly<Record<Name, LossRule>> {
  const entries = Object.entries<readonly [string, string]>(rows);
  return Object.fromEntries(entries.map(([name, [what, reason]]) => [name, { ...rule, what, reason }])) as Readonly<
    Record<Name, LossRule>
  >;
}

export const DROPPED_SENDING = { kind: "dropped", direction: "encode" } as const;
export const BENT_SENDING = { kind: "bent", direction: "encode" } as const;
export const DROPPED_RECEIVING = { kind: "dropped", direction: "decode" } as const;
const BENT_RECEIVING = { kind: "bent", direction: "decode" } as const;

export const PART_LOSSES = {
  ...lossRules(DROPPED_SENDING, {
    partFilename: ["part.filename", "Only files have a name; text and data have none."],
    partMediaType: ["part.mediaType", "Only files have a media type: text is text/plain and data is application/json."],
  }),
  ...lossRules(BENT_SENDING, {
    partData: ["part.data", 'Data in a form that the dialect does not accept is sent as {"value": …}.'],
  }),
};

export const STATE_LOSSES = {
  ...lossRules(BENT_SENDING, {
    rejected: ["status.state TASK_STATE_REJECTED", "The dialect has no such state: a rejected task is sent as failed."],
    authRequired: [
      "status.state TASK_STATE_AUTH_REQUIRED",
      "The dialect has no such state: a task that waits for authorization is sent as input-required.",
    ],
  }),
  ...lossRules(DROPPED_RECEIVING, { timestamp: ["status.timestamp", "It is not a time in ISO 8601."] }),
};

export const LEGACY_LOSSES = {
  ...RESPONSE_LOSSES,
  ...PART_LOSSES,
  ...STATE_LOSSES,
  ...lossRules(BENT_SENDING, {
    cardSecurity: [
      "card.securitySchemes",
      "Schemes are words (apiKey, bearer, basic, oauth2), without header names, flows or scopes.",
    ],
    messageAsTask: [
      "send.message, stream.message",
      "Every send is answered by a task: a message without one is sent as the status message of a completed task.",
    ],
  }),
  ...lossRules(BENT_RECEIVING, {
    cardAuthentication: [
      "card.authentication",
      "A word does not say where a key goes: X-API-Key is assumed, and a bearer token for oauth2.",
    ],
  }),
  ...lossRules(DROPPED_SENDING, {
    cardMembers: [
      "card.securityRequirements, card.signatures, card.iconUrl, card.capabilities.extensions",
      "The card has no such members.",
    ],
    messageExtensions: ["message.extensions", "Messages have no extensions."],
    referenceTaskIds: ["message.referenceTaskIds", "Messages refer to no other tasks."],
    artifactExtensions: ["artifact.extensions", "Artifacts have no extensions."],
    acceptedOutputModes: ["send.configuration.acceptedOutputModes", "A send does not say which output it takes."],
    returnImmediately: ["send.configuration.returnImmediately", "A send waits until the task ends or asks something."],
    tenant: ["call.tenant", "There are no tenants: the agent is whichever the address stands for."],
    callExtensions: ["call.extensions", "There are no extensions to ask for."],
  }),
};
