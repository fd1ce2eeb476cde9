/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`, its request message in `params`. */

import { jsonReply } from "../../wire/exchange.ts";
import { encodeResult } from "../../wire/json-rpc.ts";
import { eventStreamReply } from "../shared/http/event-stream.ts";
import { jsonRpcFraming, serveJsonRpc } from "../shared/http/json-rpc.ts";
import { kindOfMethod, METHODS } from "./decode.ts";
import { encodeAnswer } from "./encode.ts";
import { toJsonRpcError } from "./errors.ts";
import { invoke } from "./invoke.ts";
import { VERSION } from "./service-parameters.ts";

const NO_PARAMS = {};

export const jsonRpc = serveJsonRpc({
  versions: [VERSION],
  unversioned: false,
  methods: new Set(Object.keys(METHODS)),
  toError: toJsonRpcError,

  async answer({ id, method, params = NO_PARAMS }, exchange, context) {
    const { keepAliveMs, maxParts } = context.limits;
    const options = { maxItems: maxParts };
    const { answer, headers } = await invoke(kindOfMethod(method), params, exchange.headers, context, options);
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      const framing = jsonRpcFraming(id, toJsonRpcError);
      return eventStreamReply(answer.outcome, { keepAliveMs, headers, framing });
    }
    return jsonReply(200, encodeResult(id, encodeAnswer(answer)), headers);
  },
});
