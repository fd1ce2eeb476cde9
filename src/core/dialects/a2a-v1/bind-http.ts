/** HTTP+JSON: operations by method and path, with fields in path, query and body. */

import { ProtocolError } from "../../model/errors.ts";
import type { OperationKind } from "../../model/operation.ts";
import { type ExchangeRequest, type FullReply, jsonReply } from "../../wire/exchange.ts";
import type { JsonLimits } from "../../wire/parse-json.ts";
import type { ServeContext } from "../contract.ts";
import { errorHeaders } from "../shared/errors.ts";
import { eventStreamReply, STOP_RECONNECTING, unlessSeen } from "../shared/http/event-stream.ts";
import { bareFraming, operationAt, refuseCompressed, serveHttp } from "../shared/http/http-serving.ts";
import { parseBody, requireMediaType } from "../shared/http/requests.ts";
import type { RouteMatch } from "../shared/http/routes.ts";
import { decodeQuery, joinRequest } from "./decode.ts";
import { encodeAnswer } from "./encode.ts";
import { ERRORS, toHttpError } from "./errors.ts";
import { HTTP_PREFIX, matchRoute } from "./http-routes.ts";
import { type Invoked, invoke } from "./invoke.ts";
import { requestedExtensions, requireVersion, VERSION } from "./service-parameters.ts";

const MEDIA_TYPE = "application/a2a+json";

export const http = serveHttp({
  version: VERSION,
  prefix: HTTP_PREFIX,
  errorReply,

  async answer(method, exchange, context) {
    requireVersion(exchange);
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path in A2A 1.0.");
    const kind = operationAt(place.methods, method);
    refuseCompressed(exchange);

    const { answer, headers } = await invokeAt(kind, method, place, exchange, context);
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      const { keepAliveMs } = context.limits;
      const frames = await unlessSeen(answer.outcome, exchange, requestedExtensions(exchange.headers));
      return frames === undefined
        ? STOP_RECONNECTING
        : eventStreamReply(frames, { keepAliveMs, headers, framing: FRAMING });
    }
    if (answer.kind === "push-delete") return { status: 204, headers: headers ?? {}, body: undefined };
    return reply(answer.kind === "push-create" ? 201 : 200, encodeAnswer(answer), headers);
  },
});

const FRAMING = bareFraming(toHttpError);

function invokeAt(
  kind: OperationKind,
  method: string,
  { named }: RouteMatch,
  exchange: ExchangeRequest,
  context: ServeContext,
): Promise<Invoked> {
  const query = decodeQuery(exchange.query);
  if (method !== "POST") {
    return invoke(kind, joinRequest(named, query), exchange.headers, context, { textual: true });
  }
  const { limits } = context;
  const inQuery: Record<string, string> =
    query.tenant === undefined || query.tenant === "" ? {} : { tenant: query.tenant };
  const request = joinRequest(named, joinRequest(inQuery, readBody(exchange, limits)));
  return invoke(kind, request, exchange.headers, context, { maxItems: limits.maxParts });
}

/** An empty body is an empty message: the path may contain all fields. */
function readBody({ body, headers }: ExchangeRequest, limits: JsonLimits): unknown {
  if (body.length === 0) return {};
  requireMediaType(headers, (mediaType) => mediaType === MEDIA_TYPE || mediaType === "application/json");
  return parseBody(body, limits);
}

const OWN_TYPE = { "content-type": MEDIA_TYPE };

function reply(status: number, json: string, extraHeaders?: Readonly<Record<string, string>>): FullReply {
  return jsonReply(status, json, extraHeaders === undefined ? OWN_TYPE : { ...OWN_TYPE, ...extraHeaders });
}

function errorReply(
  error: ProtocolError,
  status: number = ERRORS[error.code].http,
  extraHeaders: Readonly<Record<string, string>> | undefined = errorHeaders(error),
): FullReply {
  return reply(status, toHttpError(error, status), extraHeaders);
}
