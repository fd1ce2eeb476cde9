/** JSON-RPC over HTTP: one URL, and streams in which every event is a complete response with the id of the request. */

import type { ErrorCode, ProtocolError } from "../../../model/errors.ts";
import type { StreamFrame } from "../../../model/operation.ts";
import { type ExchangeReply, type ExchangeRequest, jsonReply } from "../../../wire/exchange.ts";
import {
  encodeError,
  type JsonRpcId,
  type JsonRpcRequest,
  RESULT_SUFFIX,
  resultPrefix,
} from "../../../wire/json-rpc.ts";
import { encodeSseLine } from "../../../wire/sse.ts";
import type { JsonRpcServing, ServeContext } from "../../contract.ts";
import { errorHeaders, toPublicError } from "../errors.ts";
import type { EventFraming } from "./event-stream.ts";
import { isJson, requireMediaType } from "./requests.ts";

/**
 * A JSON-RPC error is a response, hence 200, even for an invalid envelope: servers of the official SDK do so and public
 * conformance kits expect it. These concern the HTTP request itself, and intermediaries should see them.
 */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

export function httpStatusOf({ code }: ProtocolError): number {
  return STATUS[code] ?? 200;
}

interface JsonRpcBinding extends Pick<JsonRpcServing, "versions" | "unversioned" | "methods" | "taskIdOf"> {
  /** Throws to refuse the request. */
  answer(request: JsonRpcRequest, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  /** The dialect's error object as JSON. */
  toError(error: ProtocolError): string;
  /** For callers that cannot decode an error in the usual form. */
  errorReply?(error: ProtocolError, request: JsonRpcRequest, exchange: ExchangeRequest): ExchangeReply | undefined;
}

export function serveJsonRpc({ answer, errorReply, toError, ...binding }: JsonRpcBinding): JsonRpcServing {
  const refuse = (error: ProtocolError, id: JsonRpcId) =>
    jsonReply(httpStatusOf(error), encodeError(id, toError(error)), errorHeaders(error));
  return {
    ...binding,
    async handle(request, exchange, context) {
      try {
        requireMediaType(exchange.headers, isJson);
        return await answer(request, exchange, context);
      } catch (thrown) {
        const error = toPublicError(thrown);
        return errorReply?.(error, request, exchange) ?? refuse(error, request.id);
      }
    },
    refuse: (error, id) => refuse(toPublicError(error), id),
  };
}

/** Events as JSON-RPC responses. `toError` encodes the dialect's error object, `toJson` an event; default: the frame's own JSON. */
export function jsonRpcFraming(
  id: JsonRpcId,
  toError: (error: ProtocolError) => string,
  toJson: (frame: StreamFrame) => string = ({ json }) => json,
): EventFraming {
  const prefix = resultPrefix(id);
  return {
    encode(batch) {
      let text = "";
      for (const frame of batch) text += encodeSseLine(prefix + toJson(frame) + RESULT_SUFFIX, frame.number);
      return text;
    },
    encodeFailure: (error) => encodeSseLine(encodeError(id, toError(toPublicError(error)))),
  };
}
