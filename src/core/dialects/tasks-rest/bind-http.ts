/** Plain HTTP: operations by method and path, tasks and errors as bare JSON, streams as server-sent events. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import { type FullReply, jsonReply } from "../../wire/exchange.ts";
import { errorHeaders } from "../shared/errors.ts";
import { eventStreamReply, STOP_RECONNECTING, unlessSeen } from "../shared/http/event-stream.ts";
import { bareFraming, operationAt, serveHttp } from "../shared/http/http-serving.ts";
import { mapFrames } from "../shared/http/map-frames.ts";
import { VERSION } from "./card.ts";
import { encodeAnswer, StreamEncoder } from "./encode.ts";
import { HTTP_STATUSES, toErrorBody } from "./errors.ts";
import { HTTP_PREFIX, matchRoute } from "./http-routes.ts";
import { invoke } from "./invoke.ts";

export const http = serveHttp({
  version: VERSION,
  prefix: HTTP_PREFIX,
  errorReply,

  async answer(method, exchange, context) {
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path.");
    const kind = operationAt(place.methods, method);
    const answer = await invoke(kind, place.id, method === "POST", exchange, context);
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      const { encode } = new StreamEncoder(answer.operation, context.report);
      const unseen = await unlessSeen(answer.outcome, exchange);
      if (unseen === undefined) return STOP_RECONNECTING;
      const frames = mapFrames(unseen, encode);
      return eventStreamReply(frames, { keepAliveMs: context.limits.keepAliveMs, framing: FRAMING });
    }
    const losses: Loss[] = [];
    const json = encodeAnswer(answer, losses);
    if (losses.length > 0) context.report(losses);
    return jsonReply(200, json);
  },
});

const FRAMING = bareFraming(toErrorBody);

function errorReply(
  error: ProtocolError,
  status: number = HTTP_STATUSES[error.code],
  headers: Readonly<Record<string, string>> | undefined = errorHeaders(error),
): FullReply {
  return jsonReply(status, toErrorBody(error), headers);
}
