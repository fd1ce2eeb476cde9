/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`. */

import { isObject } from "../../model/json.ts";
import type { Loss } from "../../model/loss.ts";
import { jsonReply } from "../../wire/exchange.ts";
import { encodeResult } from "../../wire/json-rpc.ts";
import { eventStreamReply } from "../shared/http/event-stream.ts";
import { jsonRpcFraming, serveJsonRpc } from "../shared/http/json-rpc.ts";
import { mapFrames } from "../shared/http/map-frames.ts";
import { VERSION } from "./card.ts";
import { METHODS } from "./decode.ts";
import { encodeAnswer, StreamEncoder } from "./encode.ts";
import { toJsonRpcError } from "./errors.ts";
import { invoke } from "./invoke.ts";

export const jsonRpc = serveJsonRpc({
  versions: [VERSION],
  unversioned: true,
  methods: new Set(Object.keys(METHODS)),
  toError: toJsonRpcError,

  taskIdOf({ params }) {
    return isObject(params) && typeof params.id === "string" ? params.id : undefined;
  },

  async answer(request, exchange, context) {
    const { id } = request;
    const answer = await invoke(request, exchange, context);
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      const { encode } = new StreamEncoder(answer.operation, context.report);
      return eventStreamReply(mapFrames(answer.outcome, encode), {
        keepAliveMs: context.limits.keepAliveMs,
        framing: jsonRpcFraming(id, toJsonRpcError),
      });
    }
    const losses: Loss[] = [];
    const result = encodeAnswer(answer, losses);
    if (losses.length > 0) context.report(losses);
    return jsonReply(200, encodeResult(id, result));
  },
});
