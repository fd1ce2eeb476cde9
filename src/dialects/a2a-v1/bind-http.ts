/** HTTP+JSON: operations by method and path, their fields in path, query and body. */

import { ProtocolError } from "../../model/errors.ts";
import type { FrameStream, OperationKind, StreamFrame } from "../../model/operation.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  isStreamReply,
  jsonReply,
} from "../../wire/exchange.ts";
import type { JsonLimits } from "../../wire/parse-json.ts";
import { encodeSseLine } from "../../wire/sse.ts";
import type { HttpServing, ServeContext } from "../contract.ts";
import { errorHeaders, toPublicError } from "../shared/errors.ts";
import { type EventFraming, eventStreamReply } from "../shared/http/event-stream.ts";
import { parseBody, requireMediaType } from "../shared/http/requests.ts";
import { operationKindFor, type RouteMatch } from "../shared/http/routes.ts";
import { decodeQuery, joinRequest } from "./decode.ts";
import { encodeAnswer } from "./encode.ts";
import { ERRORS, toHttpError } from "./errors.ts";
import { HTTP_PREFIX, matchRoute } from "./http-routes.ts";
import { type Invoked, invoke } from "./invoke.ts";
import { requireVersion, VERSION } from "./service-parameters.ts";

const MEDIA_TYPE = "application/a2a+json";

export const http: HttpServing = {
  version: VERSION,
  prefix: HTTP_PREFIX,

  async handle(exchange, context) {
    const { method } = exchange;
    const reply = await replyTo(method === "HEAD" ? "GET" : method, exchange, context);
    return method === "HEAD" ? headOf(reply) : reply;
  },

  refuse: (error, _exchange, status) => errorReply(toPublicError(error), status),
};

async function replyTo(method: string, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply> {
  try {
    requireVersion(exchange);
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path in A2A 1.0.");
    const kind = operationKindFor(place.methods, method);
    if (kind === undefined) return refuseMethod(place);
    const encoding = exchange.headers["content-encoding"];
    if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity")
      return refuseEncoding(encoding);

    const { answer, headers } = await invokeAt(kind, method, place, exchange, context);
    if (answer.kind === "stream" || answer.kind === "subscribe") {
      return streamReply(answer.outcome, headers, context);
    }
    if (answer.kind === "push-delete") return { status: 204, headers: headers ?? {}, body: undefined };
    return reply(answer.kind === "push-create" ? 201 : 200, encodeAnswer(answer), headers);
  } catch (error) {
    return errorReply(toPublicError(error));
  }
}

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
  const inQuery = query.tenant === undefined || query.tenant === "" ? {} : { tenant: query.tenant };
  const request = joinRequest(named, joinRequest(inQuery, readBody(exchange, limits)));
  return invoke(kind, request, exchange.headers, context, { maxItems: limits.maxParts });
}

/** An empty body is an empty message: the path may have said everything. */
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

function refuseMethod({ allow }: RouteMatch): FullReply {
  const error = new ProtocolError("METHOD_NOT_FOUND", `This path answers ${allow} only.`);
  return errorReply(error, 405, { allow });
}

function refuseEncoding(encoding: string): FullReply {
  const error = new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must not be compressed.", {
    metadata: { contentEncoding: encoding },
  });
  return errorReply(error, 415, { "accept-encoding": "identity" });
}

function headOf(full: ExchangeReply): FullReply {
  if (isStreamReply(full)) full.frames[Symbol.asyncIterator]().return?.();
  return { status: full.status, headers: full.headers, body: undefined };
}

const FRAMING: EventFraming = {
  encode: encodeBatch,
  encodeFailure: (error) => `event: error\n${encodeSseLine(toHttpError(toPublicError(error)))}`,
};

function streamReply(frames: FrameStream, headers: Invoked["headers"], { limits }: ServeContext): ExchangeReply {
  return eventStreamReply(frames, {
    keepAliveMs: limits.keepAliveMs,
    headers,
    framing: FRAMING,
  });
}

function encodeBatch(batch: readonly StreamFrame[]): string {
  let text = "";
  for (const { json, number } of batch) text += encodeSseLine(json, number);
  return text;
}
