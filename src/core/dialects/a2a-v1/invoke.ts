/** From request to outcome, shared by all bindings. */
import type { OperationKind } from "../../model/operation.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { ServeContext } from "../contract.ts";
import { activationHeaders, createCall, requireCapability } from "../shared/http/requests.ts";
import { decodeRequest } from "./decode.ts";
import type { Answer } from "./encode.ts";
import type { ReadOptions } from "./proto/schema.ts";
import { requestedExtensions } from "./service-parameters.ts";

export const DIALECT_NAME = "a2a-v1";

export interface Invoked {
  readonly answer: Answer;
  /** Additional headers of the reply. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export async function invoke(
  kind: OperationKind,
  request: unknown,
  headers: ExchangeRequest["headers"],
  context: ServeContext,
  options: ReadOptions,
): Promise<Invoked> {
  requireCapability(kind, context.service);
  const { operation, tenant } = decodeRequest(kind, request, options, headers["last-event-id"]);
  const named = tenant === "" ? undefined : context.agentOfTenant(tenant);
  const service = named ?? context.service;
  const extensions = requestedExtensions(headers);
  const unknownTenant = named === undefined ? tenant : "";
  const call = createCall(operation, headers, context, DIALECT_NAME, extensions, unknownTenant);
  const outcome = await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  const answer = { kind: operation.kind, operation, outcome } as Answer;
  return { answer, headers: activationHeaders(service, extensions, "a2a-extensions") };
}
