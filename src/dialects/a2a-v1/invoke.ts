/** The way from a request to an outcome that all bindings share. */
import { ProtocolError } from "../../model/errors.ts";
import type { CallContext, OperationKind } from "../../model/operation.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { idempotencyKeyOf } from "../shared/http/requests.ts";
import { decodeRequest } from "./decode.ts";
import type { Answer } from "./encode.ts";
import type { ReadOptions } from "./proto/schema.ts";
import { requestedExtensions } from "./service-parameters.ts";

export const DIALECT_NAME = "a2a-v1";

export interface Invoked {
  readonly answer: Answer;
  /** Of the reply, besides the usual ones. */
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
  const idempotencyKey = idempotencyKeyOf(operation, headers, extensions);
  const call: CallContext = {
    caller: context.caller,
    tenant: named === undefined ? tenant : "",
    extensions,
    dialect: DIALECT_NAME,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const outcome = await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  const answer = { kind: operation.kind, operation, outcome } as Answer;
  return { answer, headers: activationHeaders(service, extensions) };
}

/** What an agent does not do at all is refused before anyone looks at how it was asked for. */
function requireCapability(kind: OperationKind, service: AgentService): void {
  if (kind.startsWith("push-") && service.card.capabilities.pushNotifications !== true) {
    throw new ProtocolError("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }
}

function activationHeaders(
  service: AgentService,
  requested: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (requested.length === 0) return undefined;
  const active = service.activate(requested);
  return active.length === 0 ? undefined : { "a2a-extensions": active.join(",") };
}
