/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`. */
import type { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import { type ExchangeReply, jsonReply } from "../../wire/exchange.ts";
import { encodeError, encodeResult, type JsonRpcId } from "../../wire/json-rpc.ts";
import type { JsonRpcServing } from "../contract.ts";
import { EnvelopeFraming } from "../shared/envelope-framing.ts";
import { errorHeaders } from "../shared/error-headers.ts";
import { eventStreamReply } from "../shared/event-stream.ts";
import { httpStatusOf } from "../shared/json-rpc-serving.ts";
import { mapFrames } from "../shared/mapped-frames.ts";
import { presentable } from "../shared/presentable.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { isJson, requireMediaType } from "../shared/request-headers.ts";
import { METHODS } from "./decode.ts";
import { encodeAnswer, StreamEncoder } from "./encode.ts";
import { toJsonRpcError } from "./errors.ts";
import { invoke } from "./invoke.ts";
import { VERSION } from "./version.ts";

export const jsonRpc: JsonRpcServing = {
  versions: [VERSION],
  unversioned: true,
  methods: new Set(Object.keys(METHODS)),

  taskNamed({ params }) {
    return isRecord(params) && typeof params.id === "string" ? params.id : undefined;
  },

  async handle(request, exchange, context) {
    const { id } = request;
    try {
      requireMediaType(exchange.headers, isJson);
      const answer = await invoke(request, exchange, context);
      if (answer.kind === "stream" || answer.kind === "subscribe") {
        const { encode } = new StreamEncoder(answer.operation, context.report);
        return eventStreamReply(mapFrames(answer.outcome, encode), {
          keepAliveMs: context.limits.keepAliveMs,
          framing: new EnvelopeFraming(id, toJsonRpcError),
        });
      }
      const losses: Loss[] = [];
      const result = encodeAnswer(answer, losses);
      if (losses.length > 0) context.report(losses);
      return jsonReply(200, encodeResult(id, result));
    } catch (error) {
      return refuse(presentable(error), id);
    }
  },

  refuse: (error, id) => refuse(presentable(error), id),
};

function refuse(error: ProtocolError, id: JsonRpcId): ExchangeReply {
  return jsonReply(httpStatusOf(error), encodeError(id, toJsonRpcError(error)), errorHeaders(error));
}
