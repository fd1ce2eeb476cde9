/** Replies that are no streams. */

import type { ProtocolError } from "../../model/errors.ts";
import { type FullReply, jsonReply } from "../../wire/exchange.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import { errorHeaders } from "../shared/errors.ts";
import { httpStatusOf } from "../shared/http/json-rpc.ts";
import { toFrameError } from "../xiaoyi/errors.ts";
import { toRefusal, toResponse } from "../xiaoyi/wire.ts";

export function answer(id: JsonRpcId, result: object): FullReply {
  return jsonReply(200, toResponse(id, result));
}

/** Unlike in A2A, a body that is not a JSON-RPC request has a status of its own. */
function statusOf(error: ProtocolError): number {
  return error.code === "PARSE_ERROR" || error.code === "INVALID_REQUEST" ? 400 : httpStatusOf(error);
}

/** `shown` takes the place of the error's own message, where a person may read it. */
export function refuse(
  error: ProtocolError,
  id: JsonRpcId,
  status: number = statusOf(error),
  shown: string = error.message,
): FullReply {
  const challenge = status === 401 ? { "www-authenticate": "Bearer" } : undefined;
  const headers = { ...errorHeaders(error), ...challenge };
  return jsonReply(status, toRefusal(id, toFrameError(error, shown)), headers);
}
