/** The way from an operation to its outcome that all bindings share. */
import { ProtocolError } from "../../model/errors.ts";
import type { Call, FrameStream, Operation, OperationKind, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import { isTerminal } from "../../model/state.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { idempotencyKeyOf } from "../shared/request-headers.ts";
import { activationHeaders, requestedExtensions } from "./service-parameters.ts";

export const DIALECT_NAME = "a2a-v03";

export interface Invoked<O extends Operation> {
  readonly outcome: OutcomeOf<O>;
  /** Of the reply, besides the usual ones. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** `headers` may as well be the metadata of a gRPC call. `service` is another than the context's where one was named. */
export async function invoke<O extends Operation>(
  operation: O,
  headers: Readonly<Record<string, string | undefined>>,
  context: ServeContext,
  service: AgentService = context.service,
): Promise<Invoked<O>> {
  const extensions = requestedExtensions(headers);
  const idempotencyKey = idempotencyKeyOf(operation, headers, extensions);
  const call: Call = {
    caller: context.caller,
    tenant: "",
    extensions,
    dialect: DIALECT_NAME,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const outcome = await service
    .dispatch(operation, call)
    .catch((error: unknown) => endOf(operation, call, service, error));
  return { outcome, headers: activationHeaders(service, extensions) };
}

/**
 * In 0.3 whoever subscribes to a task that has ended is shown the task, and that is all; 1.0 refuses. Any other failure
 * remains one.
 */
async function endOf<O extends Operation>(
  operation: O,
  call: Call,
  service: AgentService,
  error: unknown,
): Promise<OutcomeOf<O>> {
  if (operation.kind !== "subscribe" || !ProtocolError.is(error) || error.code !== "UNSUPPORTED_OPERATION") throw error;
  if (service.card.capabilities.streaming !== true) throw error;
  const task = await service.dispatch({ kind: "get", id: operation.id }, call);
  if (!isTerminal(task.status.state)) throw error;
  const event = { task };
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return oneFrame({ event, json: JSON.stringify(event) }) as FrameStream as OutcomeOf<O>;
}

async function* oneFrame(frame: StreamFrame): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  yield [frame];
}

/** What an agent does not do at all is refused before anyone looks at how it was asked for. */
export function requireCapability(kind: OperationKind, service: AgentService): void {
  if (kind.startsWith("push-") && service.card.capabilities.pushNotifications !== true) {
    throw new ProtocolError("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }
}
