/** What the two bindings of the proto have no field for. */
import type { LossRule } from "../../model/loss.ts";

const BOTH = ["HTTP+JSON", "GRPC"];
const GRPC = ["GRPC"];

export const PROTO_LOSSES = {
  referenceTaskIds: {
    kind: "dropped",
    what: "message.referenceTaskIds",
    reason: "The proto of 0.3 has no such field.",
    direction: "said",
    bindings: BOTH,
  },
  cancelMetadata: {
    kind: "dropped",
    what: "cancel.metadata",
    reason: "The proto of 0.3 has no metadata in requests to cancel.",
    direction: "said",
    bindings: BOTH,
  },
  noHistory: {
    kind: "bent",
    what: "configuration.historyLength, get.historyLength",
    reason: "A length of 0 is the same as none in bytes: the agent may show its history.",
    direction: "said",
    bindings: GRPC,
  },
  credentialsWithoutScheme: {
    kind: "dropped",
    what: "pushConfig.authentication.credentials",
    reason: "The model has credentials only together with a scheme.",
    direction: "heard",
    bindings: BOTH,
  },
} as const satisfies Record<string, LossRule>;
