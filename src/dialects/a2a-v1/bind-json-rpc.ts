/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`, its request message in `params`. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import { type ExchangeReply, jsonReply } from "../../wire/exchange.ts";
import { encodeError, encodeResult, type JsonRpcId, RESULT_SUFFIX, resultPrefix } from "../../wire/json-rpc.ts";
import { sseLineFrame } from "../../wire/sse.ts";
import type { JsonRpcServing, ServeContext } from "../contract.ts";
import { type EventFraming, eventStreamReply } from "../shared/event-stream.ts";
import { presentable } from "../shared/presentable.ts";
import { isJson, requireMediaType } from "../shared/request-headers.ts";
import { kindOfMethod, METHODS } from "./decode.ts";
import { encodeAnswer } from "./encode.ts";
import { errorHeaders, toJsonRpcError } from "./errors.ts";
import { type Invoked, invoke } from "./invoke.ts";
import { VERSION } from "./service-parameters.ts";

/**
 * An error of an operation is an answer, hence 200. These are about the HTTP request itself, and intermediaries
 * should see them; clients look into the body first in any case.
 */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  PARSE_ERROR: 400,
  INVALID_REQUEST: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

const NO_PARAMS = {};

export const jsonRpc: JsonRpcServing = {
  versions: [VERSION],
  unversioned: false,
  methods: new Set(Object.keys(METHODS)),

  async handle(request, exchange, context) {
    const { id } = request;
    try {
      if (request.notification) {
        throw new ProtocolError("INVALID_REQUEST", "The request needs an id: every A2A method is answered.");
      }
      requireMediaType(exchange.headers, isJson);
    } catch (error) {
      return refuse(presentable(error), id, 400);
    }
    try {
      const kind = kindOfMethod(request.method);
      const options = { maxItems: context.limits.maxParts };
      const { answer, headers } = await invoke(kind, request.params ?? NO_PARAMS, exchange.headers, context, options);
      if (answer.kind === "stream" || answer.kind === "subscribe") {
        return streamReply(answer.outcome, id, headers, context);
      }
      return jsonReply(200, encodeResult(id, encodeAnswer(answer)), headers);
    } catch (error) {
      return refuse(presentable(error), id);
    }
  },

  refuse: (error, id) => refuse(presentable(error), id),
};

function refuse(error: ProtocolError, id: JsonRpcId, status: number = STATUS[error.code] ?? 200): ExchangeReply {
  return jsonReply(status, encodeError(id, toJsonRpcError(error)), errorHeaders(error));
}

function streamReply(
  frames: FrameStream,
  id: JsonRpcId,
  headers: Invoked["headers"],
  { limits }: ServeContext,
): ExchangeReply {
  return eventStreamReply(frames, { keepAliveMs: limits.keepAliveMs, headers, framing: new EnvelopeFraming(id) });
}

/** Every event is a whole response with the id of the request (§9.4.2). */
class EnvelopeFraming implements EventFraming {
  readonly #id: JsonRpcId;
  readonly #prefix: string;

  constructor(id: JsonRpcId) {
    this.#id = id;
    this.#prefix = resultPrefix(id);
  }

  encode(batch: readonly StreamFrame[]): string {
    let text = "";
    for (const { json, number } of batch) text += sseLineFrame(this.#prefix + json + RESULT_SUFFIX, number);
    return text;
  }

  encodeFailure(error: unknown): string {
    return sseLineFrame(encodeError(this.#id, toJsonRpcError(presentable(error))));
  }
}
