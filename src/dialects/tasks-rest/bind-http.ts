/** Plain HTTP: operations by method and path, tasks and errors as bare JSON, streams as server-sent events of it. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { CallContext, StreamFrame } from "../../model/operation.ts";
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
import { mapFrames } from "../shared/http/map-frames.ts";
import { idempotencyKeyOf, isJson, parseBody, requireMediaType } from "../shared/http/requests.ts";
import { allowHeader, operationKindFor } from "../shared/http/routes.ts";
import { DIALECT_NAME, VERSION } from "./card.ts";
import { decodeRequest } from "./decode.ts";
import { type Answer, encodeAnswer, StreamEncoder } from "./encode.ts";
import { HTTP_STATUSES, toErrorBody } from "./errors.ts";
import { HTTP_PREFIX, matchRoute, type SupportedKind } from "./http-routes.ts";

export const http: HttpServing = {
  version: VERSION,
  prefix: HTTP_PREFIX,

  async handle(exchange, context) {
    const { method } = exchange;
    const reply = await replyTo(method === "HEAD" ? "GET" : method, exchange, context);
    return method === "HEAD" ? headOf(reply) : reply;
  },

  refuse: (error) => errorReply(toPublicError(error)),
};

async function replyTo(method: string, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply> {
  try {
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path.");
    const kind = operationKindFor(place.methods, method);
    if (kind === undefined) {
      const allow = allowHeader(place.methods);
      return errorReply(new ProtocolError("METHOD_NOT_FOUND", `This path answers ${allow} only.`), 405, { allow });
    }
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
  } catch (error) {
    return errorReply(toPublicError(error));
  }
}

const NO_EXTENSIONS: readonly string[] = [];

async function invoke(
  kind: SupportedKind,
  id: string,
  hasBody: boolean,
  exchange: ExchangeRequest,
  context: ServeContext,
): Promise<Answer> {
  const { caller, ids, limits, report, service } = context;
  const { headers, query } = exchange;
  const words = {
    id,
    query,
    body: hasBody ? readBody(exchange, limits) : undefined,
    lastEventId: headers["last-event-id"],
  };
  const { losses, value: operation } = decodeRequest(kind, words, { maxItems: limits.maxParts }, ids);
  if (losses.length > 0) report(losses);
  const idempotencyKey = idempotencyKeyOf(operation, headers, NO_EXTENSIONS);
  const call: CallContext = {
    caller,
    tenant: "",
    // Above all not to leave out the task a resumed stream begins with: what follows is told by changing it.
    extensions: NO_EXTENSIONS,
    dialect: DIALECT_NAME,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const outcome = await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return { kind: operation.kind, operation, outcome } as Answer;
}

function readBody({ body, headers }: ExchangeRequest, limits: JsonLimits): unknown {
  if (body.length === 0) return undefined;
  requireMediaType(headers, isJson);
  refuseEncoding(headers["content-encoding"]);
  return parseBody(body, limits);
}

function refuseEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity") return;
  throw new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must not be compressed.", {
    metadata: { contentEncoding: encoding },
  });
}

function errorReply(
  error: ProtocolError,
  status: number = HTTP_STATUSES[error.code],
  headers: Readonly<Record<string, string>> | undefined = errorHeaders(error),
): FullReply {
  return jsonReply(status, toErrorBody(error), headers);
}

function headOf(full: ExchangeReply): FullReply {
  if (isStreamReply(full)) full.frames[Symbol.asyncIterator]().return?.();
  return { status: full.status, headers: full.headers, body: undefined };
}

const FRAMING: EventFraming = {
  encode(batch: readonly StreamFrame[]): string {
    let text = "";
    for (const { json, number } of batch) text += encodeSseLine(json, number);
    return text;
  },
  encodeFailure: (error) => `event: error\n${encodeSseLine(toErrorBody(toPublicError(error)))}`,
};
