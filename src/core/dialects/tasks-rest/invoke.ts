/** From request to outcome. */
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { JsonLimits } from "../../wire/parse-json.ts";
import type { ServeContext } from "../contract.ts";
import { refuseCompressed } from "../shared/http/http-serving.ts";
import { createCall, isJson, parseBody, requireMediaType } from "../shared/http/requests.ts";
import { decodeRequest } from "./decode.ts";
import type { Answer } from "./encode.ts";
import type { SupportedKind } from "./http-routes.ts";

export const DIALECT_NAME = "tasks-rest";

/** There are no extensions to request, in particular none that omits the task at the start of a resumed stream. */
export async function invoke(
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
