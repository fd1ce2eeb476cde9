/** Calling over JSON-RPC: one URL, one POST per operation, streams as SSE of whole envelopes. */

import { NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { CallTarget, ExchangeCalling } from "../contract.ts";
import { decodeEnvelope, decodeFrameEnvelope, jsonRpcCall } from "../shared/http/calling.ts";
import { decodeFrame, decodeOutcome, methodOf } from "./decode.ts";
import { decodeError } from "./errors.ts";
import { serviceHeaders, tenantOf, toTimestamp, VERSION } from "./service-parameters.ts";

/** Undefined members are omitted by `JSON.stringify`. */
export function paramsOf(operation: Operation, target: CallTarget): object {
  const tenant = tenantOf(target);
  switch (operation.kind) {
    case "send":
    case "stream":
      return {
        tenant,
        message: operation.message,
        configuration: operation.configuration,
        metadata: operation.metadata,
      };
    case "list": {
      const { kind: _kind, statusTimestampAfter, ...query } = operation;
      return { tenant, ...query, statusTimestampAfter: toTimestamp(statusTimestampAfter) };
    }
    case "subscribe":
      return { tenant, id: operation.id };
    case "push-create":
      return { ...operation.config, tenant, taskId: operation.taskId };
    default: {
      const { kind: _kind, ...members } = operation;
      return { tenant, ...members };
    }
  }
}

export const jsonRpcCalling: ExchangeCalling = {
  carrier: "exchange",
  binding: "JSONRPC",
  version: VERSION,

  encode(operation, target) {
    const params = paramsOf(operation, target);
    const headers = serviceHeaders(operation, target);
    return { value: jsonRpcCall(methodOf(operation.kind), params, target, headers), losses: NO_LOSSES };
  },

  decode(kind, response) {
    const read = (result: unknown) => decodeOutcome(kind, result);
    return decodeEnvelope(response, decodeError, read, () => (kind === "push-delete" ? read(undefined) : undefined));
  },

  decodeFrame({ data, id }) {
    return decodeFrame(decodeFrameEnvelope(data, decodeError), id);
  },
};
