/** HTTP+JSON as agents of 0.3 really speak it: the messages of the proto in JSON, by method and path. */

import { invalidParams, ProtocolError } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { Loss } from "../../model/loss.ts";
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
import { isJson, parseBody, requireMediaType } from "../shared/http/requests.ts";
import { operationKindFor, type RouteMatch } from "../shared/http/routes.ts";
import { ERRORS, toErrorObject } from "./errors.ts";
import { HTTP_PREFIX, matchRoute } from "./http-routes.ts";
import { invoke, isFrameStream, type ProtoReply, serveRequest } from "./invoke.ts";
import { toLegacyCardDocument, toWireCard } from "./json/card.ts";
import { toProtoEvent } from "./proto/encode.ts";
import { pushConfigName, taskName } from "./resource-names.ts";
import { VERSION } from "./service-parameters.ts";

/** Where 0.2 has the card for callers who have shown who they are: a document of its own, with HTTP's own errors. */

export const httpExtendedCard: HttpServing = {
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

/** An agent without such a card has nothing here. */
function extendedCardErrorReply(error: ProtocolError): ExchangeReply {
  const status = error.code === "UNSUPPORTED_OPERATION" ? 404 : ERRORS[error.code].http;
  return jsonReply(status, toErrorObject(error), errorHeaders(error));
}

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
    requireVersion(exchange.headers["a2a-version"]);
    const place = matchRoute(exchange.path);
    if (place === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path in A2A 0.3.");
    const kind = operationKindFor(place.methods, method);
    if (kind === undefined) return refuseMethod(place);
    refuseEncoding(exchange.headers["content-encoding"]);

    const posted = method === "POST";
    const options = posted ? { maxItems: context.limits.maxParts } : { textual: true };
    const body = posted ? readBody(exchange, context.limits) : {};
    const request = requestOf(kind, place, decodeQuery(exchange.query), body);
    const served = await serveRequest(kind, request, exchange.headers, context, options);
    return replyWith(served, context);
  } catch (error) {
    return errorReply(toPublicError(error));
  }
}

/** The release has no such header; a caller that names another version knows that it wants something else. */
function requireVersion(named: string | undefined): void {
  if (named === undefined || named.trim() === "" || /^0\.[23](?:\.\d+)?$/.test(named.trim())) return;
  throw new ProtocolError("VERSION_NOT_SUPPORTED", `A2A-Version ${named} is not spoken here, but ${VERSION} is.`, {
    metadata: { requestedVersion: named.slice(0, 32), supportedVersions: VERSION },
  });
}

function replyWith({ kind, answer, headers }: ProtoReply, context: ServeContext): ExchangeReply {
  if (isFrameStream(answer)) return streamReply(answer, kind === "stream", headers, context);
  if (answer.name === "nothing") return { status: 204, headers: headers ?? {}, body: undefined };
  return jsonReply(kind === "push-create" ? 201 : 200, JSON.stringify(answer.value), headers);
}

type Query = Readonly<Record<string, string>>;

/** The request in one piece. What the path names is what is meant, whatever a body repeats. */
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

/** Some send the whole request, some only the config in it, as the proto's annotation has it; the id is then in the query. */
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

/** An empty body is an empty message, and so is the `null` that some clients write for it. */
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

function refuseMethod({ allow }: RouteMatch): FullReply {
  return errorReply(new ProtocolError("METHOD_NOT_FOUND", `This path answers ${allow} only.`), 405, { allow });
}

function refuseEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity") return;
  throw new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must not be compressed.", {
    metadata: { contentEncoding: encoding },
  });
}

function headOf(full: ExchangeReply): FullReply {
  if (isStreamReply(full)) full.frames[Symbol.asyncIterator]().return?.();
  return { status: full.status, headers: full.headers, body: undefined };
}

function streamReply(
  frames: FrameStream,
  closesOnInput: boolean,
  headers: ProtoReply["headers"],
  { limits, report }: ServeContext,
): ExchangeReply {
  const framing = new ProtoJsonFraming(closesOnInput, report);
  return eventStreamReply(frames, { keepAliveMs: limits.keepAliveMs, headers, framing });
}

/** Chunks of text are most of what is streamed, and spelled as in 1.0: none of these members, nothing to translate. */
const RENAMED_MEMBERS = /"(?:raw|url|data|filename|mediaType)":/;

class ProtoJsonFraming implements EventFraming {
  readonly #closesOnInput: boolean;
  readonly #report: (losses: readonly Loss[]) => void;

  constructor(closesOnInput: boolean, report: (losses: readonly Loss[]) => void) {
    this.#closesOnInput = closesOnInput;
    this.#report = report;
  }

  encode(batch: readonly StreamFrame[]): string {
    const losses: Loss[] = [];
    let text = "";
    for (const frame of batch) text += encodeSseLine(this.#jsonOf(frame, losses), frame.number);
    if (losses.length > 0) this.#report(losses);
    return text;
  }

  #jsonOf(frame: StreamFrame, losses: Loss[]): string {
    const { json } = frame;
    if (json.startsWith('{"artifactUpdate"') && !RENAMED_MEMBERS.test(json)) return json;
    return JSON.stringify(toProtoEvent(frame.event, losses, this.#closesOnInput));
  }

  encodeFailure(error: unknown): string {
    return `event: error\n${encodeSseLine(toErrorObject(toPublicError(error)))}`;
  }
}
