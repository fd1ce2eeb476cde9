/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`, its request message in `params`. */

import type { ProtocolError } from "../../model/errors.ts";
import type { FrameStream } from "../../model/operation.ts";
import { type ExchangeReply, jsonReply } from "../../wire/exchange.ts";
import { encodeError, encodeResult, type JsonRpcId } from "../../wire/json-rpc.ts";
import type { JsonRpcServing, ServeContext } from "../contract.ts";
import { errorHeaders, toPublicError } from "../shared/errors.ts";
import { eventStreamReply } from "../shared/http/event-stream.ts";
import { httpStatusOf, JsonRpcFraming } from "../shared/http/json-rpc.ts";
import { isJson, requireMediaType } from "../shared/http/requests.ts";
import { kindOfMethod, METHODS } from "./decode.ts";
import { encodeAnswer } from "./encode.ts";
import { toJsonRpcError } from "./errors.ts";
import { type Invoked, invoke } from "./invoke.ts";
import { VERSION } from "./service-parameters.ts";

const NO_PARAMS = {};

export const jsonRpc: JsonRpcServing = {
  versions: [VERSION],
  unversioned: false,
  methods: new Set(Object.keys(METHODS)),

  async handle(request, exchange, context) {
    const { id } = request;
    try {
      requireMediaType(exchange.headers, isJson);
      const kind = kindOfMethod(request.method);
      const options = { maxItems: context.limits.maxParts };
      const { answer, headers } = await invoke(kind, request.params ?? NO_PARAMS, exchange.headers, context, options);
      if (answer.kind === "stream" || answer.kind === "subscribe") {
        return streamReply(answer.outcome, id, headers, context);
      }
      return jsonReply(200, encodeResult(id, encodeAnswer(answer)), headers);
    } catch (error) {
      return errorReply(toPublicError(error), id);
    }
  },

  refuse: (error, id) => errorReply(toPublicError(error), id),
};

function errorReply(error: ProtocolError, id: JsonRpcId): ExchangeReply {
  return jsonReply(httpStatusOf(error), encodeError(id, toJsonRpcError(error)), errorHeaders(error));
}

function streamReply(
  frames: FrameStream,
  id: JsonRpcId,
  headers: Invoked["headers"],
  { limits }: ServeContext,
): ExchangeReply {
  return eventStreamReply(frames, {
    keepAliveMs: limits.keepAliveMs,
    headers,
    framing: new JsonRpcFraming(id, toJsonRpcError),
  });
}
