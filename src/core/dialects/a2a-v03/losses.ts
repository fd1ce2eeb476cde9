/** Everything that 0.3 cannot express, and everything in 0.3 that the model cannot. */

import { BENT_SENDING, DROPPED_RECEIVING, DROPPED_SENDING, lossRules } from "../shared/legacy/losses.ts";
import { RESPONSE_LOSSES } from "../shared/responses.ts";

const PROTO_BINDINGS = ["HTTP+JSON", "GRPC"];
const JSON_RPC = ["JSONRPC"];

/** What the two proto bindings have no field for. */
export const PROTO_LOSSES = {
  ...lossRules(
    { ...DROPPED_SENDING, bindings: PROTO_BINDINGS },
    {
      referenceTaskIds: ["message.referenceTaskIds", "The proto of 0.3 has no such field."],
      cancelMetadata: ["cancel.metadata", "The proto of 0.3 has no metadata in requests to cancel."],
    },
  ),
  ...lossRules(
    { ...BENT_SENDING, bindings: ["GRPC"] },
    {
      noHistory: [
        "configuration.historyLength, get.historyLength",
        "A length of 0 is the same as none in bytes: the agent may show its history.",
      ],
    },
  ),
  ...lossRules(
    { ...DROPPED_RECEIVING, bindings: PROTO_BINDINGS },
    {
      credentialsWithoutScheme: [
        "pushConfig.authentication.credentials",
        "The model has credentials only together with a scheme.",
      ],
    },
  ),
};

export const LOSSES = {
  ...lossRules(DROPPED_SENDING, {
    tenant: ["call.tenant", "0.3 has no tenants: the agent is whichever the address stands for."],
    signaturesSent: [
      "card.signatures",
      "They are made over the card as 1.0 spells it; over another document they would not verify.",
    ],
    interfaceTenant: ["card.supportedInterfaces[].tenant", "Interfaces of 0.3 have no tenant."],
    deviceCode: ["card.securitySchemes.*.oauth2SecurityScheme.flows.deviceCode", "0.3 does not know this flow."],
    pkceRequired: [
      "card.securitySchemes.*.oauth2SecurityScheme.flows.*.pkceRequired",
      "0.3 cannot say that PKCE is required.",
    ],
    unknownScheme: ["card.securitySchemes.*", "This kind of scheme is not known to 0.3."],
  }),
  ...lossRules(
    { ...BENT_SENDING, bindings: JSON_RPC },
    {
      pushPaging: ["push-list.pageSize, push-list.pageToken", "0.3 lists all push configs of a task at once."],
    },
  ),
  ...lossRules(
    { ...DROPPED_RECEIVING, bindings: JSON_RPC },
    {
      requestMetadata: [
        "get.metadata, subscribe.metadata, push-*.metadata",
        "Only sends and cancels have metadata in the model.",
      ],
      stateTransitionHistory: ["card.capabilities.stateTransitionHistory", "1.0 has no such capability."],
    },
  ),
  ...lossRules(DROPPED_RECEIVING, {
    pushSchemes: [
      "pushConfig.authentication.schemes",
      "The model has exactly one scheme: the first is kept, and credentials without any are not.",
    ],
    unreadableTimestamp: ["status.timestamp", "It is not an ISO 8601 time."],
    signaturesReceived: [
      "card.signatures",
      "They are made over the card as 0.3 spells it and can be verified on that document only.",
    ],
    unknownSchemeReceived: ["card.securitySchemes.*", "This kind of scheme is not known to 1.0."],
  }),
  ...RESPONSE_LOSSES,
};
