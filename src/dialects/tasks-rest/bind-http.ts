/** Plain HTTP: operations by method and path, tasks and errors as bare JSON, streams as server-sent events. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import { type ExchangeRequest, type FullReply, jsonReply } from "../../wire/exchange.ts";
import type { JsonLimits } from "../../wire/parse-json.ts";
import type { ServeContext } from "../contract.ts";
import { errorHeaders } from "../shared/errors.ts";
import { eventStreamReply } from "../shared/http/event-stream.ts";
import { bareFraming, operationAt, refuseCompressed, serveHttp } from "../shared/http/http-serving.ts";
import { mapFrames } from "../shared/http/map-frames.ts";
import { createCall, isJson, parseBody, requireMediaType } from "../shared/http/requests.ts";
import { DIALECT_NAME, VERSION } from "./card.ts";
import { decodeRequest } from "./decode.ts";
import { type Answer, encodeAnswer, StreamEncoder } from "./encode.ts";
import { HTTP_STATUSES, toErrorBody } from "./errors.ts";
import { HTTP_PREFIX, matchRoute, type SupportedKind } from "./http-routes.ts";

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
      const frames = mapFrames(answer.outcome, encode);
      return eventStreamReply(frames, { keepAliveMs: context.limits.keepAliveMs, framing: FRAMING });
    }
    const losses: Loss[] = [];
    const json = encodeAnswer(answer, losses);
    if (losses.length > 0) context.report(losses);
    return jsonReply(200, json);
  },
});

const FRAMING = bareFraming(toErrorBody);

/** There are no extensions to request, in particular none that omits the task at the start of a resumed stream. */
async function invoke(
  kind: SupportedKind,
  id: string,
  hasBody: boolean,
  exchange: ExchangeRequest,
  context: ServeContext,
): Promise<Answer> {
  const { ids, limits, report, service } = context;
  const { headers, query } = exchange;
  const fields = {
    id,
    query,
    body: hasBody ? readBody(exchange, limits) : undefined,
    lastEventId: headers["last-event-id"],
  };
  const { losses, value: operation } = decodeRequest(kind, fields, { maxItems: limits.maxParts }, ids);
  if (losses.length > 0) report(losses);
  const outcome = await service.dispatch(operation, createCall(operation, headers, context, DIALECT_NAME));
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return { kind: operation.kind, operation, outcome } as Answer;
}

function readBody(exchange: ExchangeRequest, limits: JsonLimits): unknown {
  if (exchange.body.length === 0) return undefined;
  requireMediaType(exchange.headers, isJson);
  refuseCompressed(exchange);
  return parseBody(exchange.body, limits);
}

function errorReply(
  error: ProtocolError,
  status: number = HTTP_STATUSES[error.code],
  headers: Readonly<Record<string, string>> | undefined = errorHeaders(error),
): FullReply {
  return jsonReply(status, toErrorBody(error), headers);
}
