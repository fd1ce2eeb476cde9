/** Everything that 0.3 cannot express, and everything in 0.3 that the model cannot. */

import type { LossRule } from "../../model/loss.ts";

/** What the two proto bindings have no field for. */

const PROTO_BINDINGS = ["HTTP+JSON", "GRPC"];
const GRPC = ["GRPC"];

export const PROTO_LOSSES = {
  referenceTaskIds: {
    kind: "dropped",
    what: "message.referenceTaskIds",
    reason: "The proto of 0.3 has no such field.",
    direction: "encode",
    bindings: PROTO_BINDINGS,
  },
  cancelMetadata: {
    kind: "dropped",
    what: "cancel.metadata",
    reason: "The proto of 0.3 has no metadata in requests to cancel.",
    direction: "encode",
    bindings: PROTO_BINDINGS,
  },
  noHistory: {
    kind: "bent",
    what: "configuration.historyLength, get.historyLength",
    reason: "A length of 0 is the same as none in bytes: the agent may show its history.",
    direction: "encode",
    bindings: GRPC,
  },
  credentialsWithoutScheme: {
    kind: "dropped",
    what: "pushConfig.authentication.credentials",
    reason: "The model has credentials only together with a scheme.",
    direction: "decode",
    bindings: PROTO_BINDINGS,
  },
} as const satisfies Record<string, LossRule>;

const JSON_RPC = ["JSONRPC"];

export const LOSSES = {
  tenant: {
    kind: "dropped",
    what: "call.tenant",
    reason: "0.3 has no tenants: the agent is whichever the address stands for.",
    direction: "encode",
  },
  pushPaging: {
    kind: "bent",
    what: "push-list.pageSize, push-list.pageToken",
    reason: "0.3 lists all push configs of a task at once.",
    direction: "encode",
    bindings: JSON_RPC,
  },
  signaturesSent: {
    kind: "dropped",
    what: "card.signatures",
    reason: "They are made over the card as 1.0 spells it; over another document they would not verify.",
    direction: "encode",
  },
  interfaceTenant: {
    kind: "dropped",
    what: "card.supportedInterfaces[].tenant",
    reason: "Interfaces of 0.3 have no tenant.",
    direction: "encode",
  },
  deviceCode: {
    kind: "dropped",
    what: "card.securitySchemes.*.oauth2SecurityScheme.flows.deviceCode",
    reason: "0.3 does not know this flow.",
    direction: "encode",
  },
  pkceRequired: {
    kind: "dropped",
    what: "card.securitySchemes.*.oauth2SecurityScheme.flows.*.pkceRequired",
    reason: "0.3 cannot say that PKCE is required.",
    direction: "encode",
  },
  unknownScheme: {
    kind: "dropped",
    what: "card.securitySchemes.*",
    reason: "This kind of scheme is not known to 0.3.",
    direction: "encode",
  },
  requestMetadata: {
    kind: "dropped",
    what: "get.metadata, subscribe.metadata, push-*.metadata",
    reason: "Only sends and cancels have metadata in the model.",
    direction: "decode",
    bindings: JSON_RPC,
  },
  pushSchemes: {
    kind: "dropped",
    what: "pushConfig.authentication.schemes",
    reason: "The model has exactly one scheme: the first is kept, and credentials without any are not.",
    direction: "decode",
  },
  unreadableRole: {
    kind: "bent",
    what: "message.role",
    reason: "An answer in a role that is neither user nor agent is read as the agent's.",
    direction: "decode",
  },
  unreadableTimestamp: {
    kind: "dropped",
    what: "status.timestamp",
    reason: "It is not an ISO 8601 time.",
    direction: "decode",
  },
  signaturesReceived: {
    kind: "dropped",
    what: "card.signatures",
    reason: "They are made over the card as 0.3 spells it and can be verified on that document only.",
    direction: "decode",
  },
  stateTransitionHistory: {
    kind: "dropped",
    what: "card.capabilities.stateTransitionHistory",
    reason: "1.0 has no such capability.",
    direction: "decode",
    bindings: JSON_RPC,
  },
  unknownSchemeReceived: {
    kind: "dropped",
    what: "card.securitySchemes.*",
    reason: "This kind of scheme is not known to 1.0.",
    direction: "decode",
  },
} as const satisfies Record<string, LossRule>;
