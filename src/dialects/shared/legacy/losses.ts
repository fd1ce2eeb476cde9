/** What dialects older than 0.2 have no member for. */
import type { LossRule } from "../../../model/loss.ts";

export const PART_LOSSES = {
  partFilename: {
    kind: "dropped",
    what: "part.filename",
    reason: "Only files have a name; text and data have none.",
    direction: "encode",
  },
  partMediaType: {
    kind: "dropped",
    what: "part.mediaType",
    reason: "Only files have a media type: text is text/plain and data is application/json.",
    direction: "encode",
  },
  partData: {
    kind: "bent",
    what: "part.data",
    reason: 'Data in a form that the dialect does not accept is sent as {"value": …}.',
    direction: "encode",
  },
} as const satisfies Record<string, LossRule>;

export const STATE_LOSSES = {
  rejected: {
    kind: "bent",
    what: "status.state TASK_STATE_REJECTED",
    reason: "The dialect has no such state: a rejected task is sent as failed.",
    direction: "encode",
  },
  authRequired: {
    kind: "bent",
    what: "status.state TASK_STATE_AUTH_REQUIRED",
    reason: "The dialect has no such state: a task that waits for authorization is sent as input-required.",
    direction: "encode",
  },
  timestamp: {
    kind: "dropped",
    what: "status.timestamp",
    reason: "It is not a time in ISO 8601.",
    direction: "decode",
  },
} as const satisfies Record<string, LossRule>;

export const LEGACY_LOSSES = {
  ...PART_LOSSES,
  ...STATE_LOSSES,
  cardSecurity: {
    kind: "bent",
    what: "card.securitySchemes",
    reason: "Schemes are words (apiKey, bearer, basic, oauth2), without header names, flows or scopes.",
    direction: "encode",
  },
  cardMembers: {
    kind: "dropped",
    what: "card.securityRequirements, card.signatures, card.iconUrl, card.capabilities.extensions",
    reason: "The card has no such members.",
    direction: "encode",
  },
  cardAuthentication: {
    kind: "bent",
    what: "card.authentication",
    reason: "A word does not say where a key goes: X-API-Key is assumed, and a bearer token for oauth2.",
    direction: "decode",
  },
  messageAsTask: {
    kind: "bent",
    what: "send.message, stream.message",
    reason:
      "Every send is answered by a task: a message without one is sent as the status message of a completed task.",
    direction: "encode",
  },
  messageExtensions: {
    kind: "dropped",
    what: "message.extensions",
    reason: "Messages have no extensions.",
    direction: "encode",
  },
  referenceTaskIds: {
    kind: "dropped",
    what: "message.referenceTaskIds",
    reason: "Messages refer to no other tasks.",
    direction: "encode",
  },
  artifactExtensions: {
    kind: "dropped",
    what: "artifact.extensions",
    reason: "Artifacts have no extensions.",
    direction: "encode",
  },
  acceptedOutputModes: {
    kind: "dropped",
    what: "send.configuration.acceptedOutputModes",
    reason: "A send does not say which output it takes.",
    direction: "encode",
  },
  returnImmediately: {
    kind: "dropped",
    what: "send.configuration.returnImmediately",
    reason: "A send waits until the task ends or asks something.",
    direction: "encode",
  },
  tenant: {
    kind: "dropped",
    what: "call.tenant",
    reason: "There are no tenants: the agent is whichever the address stands for.",
    direction: "encode",
  },
  callExtensions: {
    kind: "dropped",
    what: "call.extensions",
    reason: "There are no extensions to ask for.",
    direction: "encode",
  },
} as const satisfies Record<string, LossRule>;
