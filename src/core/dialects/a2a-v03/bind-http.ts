/** HTTP+JSON as 0.3 agents implement it: the messages of the proto in JSON, by method and path. */

import { invalidParams, ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { Loss } from "../../model/loss.ts";
import type { OperationKind } from "../../model/operation.ts";
import { type ExchangeReply, type ExchangeRequest, type FullReply, jsonReply } from "../../wire/exchange.ts";
import type { JsonLimits } from "../../wire/parse-json.ts";
import type { AdmittedHttpServing, ServeContext } from "../contract.ts";
import { errorHeaders, toPublicError } from "../shared/errors.ts";
import { type EventFraming, eventStreamReply, STOP_RECONNECTING, unlessSeen } from "../shared/http/event-stream.ts";
import { bareFraming, operationAt, refuseCompressed, serveHttp } from "../shared/http/http-serving.ts";
import { isJson, parseBody, requireMediaType } from "../shared/http/requests.ts";
import type { RouteMatch } from "../shared/http/routes.ts";
import { ERRORS, toErrorObject } from "./errors.ts";
import { HTTP_PREFIX, matchRoute } from "./http-routes.ts";
import { invoke, isFrameStream, type ProtoReply, serveRequest } from "./invoke.ts";
import { toLegacyCardDocument, toWireCard } from "./json/card.ts";
import { toProtoEvent } from "./proto/encode.ts";
import { pushConfigName, taskName } from "./resource-names.ts";
import { requestedExtensions, VERSION } from "./service-parameters.ts";

/** The path where 0.2 serves the card for authenticated callers: a plain document, with plain HTTP errors. */
export const httpExtendedCard: AdmittedHttpServing = {
  version: "0.2",
  prefix: "agent/authenticatedExtendedCard",

  async handle(exchange, context) {
    try {
      if (exchange.path !== "" && exchange.path !== "/") {
        throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path.");
      }
      if (exchange.method !== "GET" && exchange.method !== "HEAD") return METHOD_NOT_ALLOWED;
      const { outcome, headers } = await invoke({ kind: "extended-card" }, exchange.headers, context);
      const { losses } = toWireCard(outcome);
      if (losses.length > 0) context.report(losses);
      return jsonReply(200, JSON.stringify(toLegacyCardDocument(outcome)), headers);
    } catch (error) {
      return extendedCardErrorReply(toPublicError(error));
    }
  },

  refuse: (error) => extendedCardErrorReply(toPublicError(error)),
};

const METHOD_NOT_ALLOWED: ExchangeReply = { status: 405, headers: { allow: "GET, HEAD" }, body: undefined };

/** 404 for an agent without an extended card. */
function extendedCardErrorReply(error: ProtocolError): ExchangeReply {
  const status = error.code === "UNSUPPORTED_OPERATION" ? 404 : ERRORS[error.code].http;
  return jsonReply(status, toErrorObject(error), errorHeaders(error));
}

export const http = serveHttp({
  version: VERSION,
  prefix: HTTP_PREFIX,
  errorReply,

  async answer(method, exchange, context) {
    requireVersion(exchange.headers["a2a-version"]);
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path in A2A 0.3.");
    const kind = operationAt(place.methods, method);
    refuseCompressed(exchange);

    const posted = method === "POST";
    const options = posted ? { maxItems: context.limits.maxParts } : { textual: true };
    const body = posted ? readBody(exchange, context.limits) : {};
    const request = requestOf(kind, place, decodeQuery(exchange.query), body);
    const reply = await serveRequest(kind, request, exchange.headers, context, options);
    if (!isFrameStream(reply.answer)) return replyWith(reply, context);
    const answer = await unlessSeen(reply.answer, exchange, requestedExtensions(exchange.headers));
    return answer === undefined ? STOP_RECONNECTING : replyWith({ ...reply, answer }, context);
  },
});

/** The release has no version header; a caller that names another version is refused. */
function requireVersion(named: string | undefined): void {
  if (named === undefined || named.trim() === "" || /^0\.[23](?:\.\d+)?$/.test(named.trim())) return;
  throw new ProtocolError("VERSION_NOT_SUPPORTED", `A2A-Version ${named} is not supported here; ${VERSION} is.`, {
    metadata: { requestedVersion: named.slice(0, 32), supportedVersions: VERSION },
  });
}

function replyWith({ kind, answer, headers }: ProtoReply, context: ServeContext): ExchangeReply {
  if (isFrameStream(answer)) {
    const { keepAliveMs } = context.limits;
    return eventStreamReply(answer, { keepAliveMs, headers, framing: framingFor(kind === "stream", context) });
  }
  if (answer === undefined) return { status: 204, headers: headers ?? {}, body: undefined };
  return jsonReply(kind === "push-create" ? 201 : 200, JSON.stringify(answer), headers);
}

type Query = Readonly<Record<string, string>>;

/** Merges path, query and body into one request. Path parameters override those repeated in the body. */
function requestOf(
  kind: OperationKind,
  { named: { id = "", configId = "" } }: RouteMatch,
  query: Query,
  body: unknown,
): unknown {
  switch (kind) {
    case "send":
    case "stream":
      return body;
    case "push-create":
      return { ...createRequest(body, query), parent: taskName(id) };
    case "push-list":
      return { ...query, parent: taskName(id) };
    case "push-get":
    case "push-delete":
      return { name: pushConfigName(id, configId) };
    case "get":
      return { ...query, name: taskName(id) };
    default:
      return { name: taskName(id) };
  }
}

/** Some clients send the whole request, others only the config (the proto's annotation) and the id in the query. */
function createRequest(body: unknown, query: Query): Readonly<Record<string, unknown>> {
  if (!isObject(body)) throw invalidParams("config", "must be an object");
  const configId = query.configId ?? query.config_id ?? body.configId ?? body.config_id;
  const config = body.config ?? body;
  return configId === undefined ? { config } : { config, configId };
}

function decodeQuery(query: string): Query {
  if (query === "") return {};
  const members: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(query)) members[name] = value;
  return members;
}

/** An empty body is an empty message, and so is the `null` that some clients send instead. */
function readBody({ body, headers }: ExchangeRequest, limits: JsonLimits): unknown {
  if (body.length === 0) return {};
  requireMediaType(headers, isJson);
  return parseBody(body, limits) ?? {};
}

function errorReply(
  error: ProtocolError,
  status: number = ERRORS[error.code].http,
  extraHeaders: Readonly<Record<string, string>> | undefined = errorHeaders(error),
): FullReply {
  return jsonReply(status, toErrorObject(error), extraHeaders);
}

/** Most streamed events are text chunks, which are the same in 1.0: without these members nothing is converted. */
const RENAMED_MEMBERS = /"(?:raw|url|data|filename|mediaType)":/;

function framingFor(closesOnInput: boolean, { report }: ServeContext): EventFraming {
  return bareFraming(toErrorObject, ({ event, json }) => {
    if (json.startsWith('{"artifactUpdate"') && !RENAMED_MEMBERS.test(json)) return json;
    const losses: Loss[] = [];
    const encoded = JSON.stringify(toProtoEvent(event, losses, closesOnInput));
    if (losses.length > 0) report(losses);
    return encoded;
  });
}
