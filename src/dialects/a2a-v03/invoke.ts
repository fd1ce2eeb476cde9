/** From operation to outcome, shared by all bindings. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type {
  CallContext,
  FrameStream,
  Operation,
  OperationKind,
  OutcomeOf,
  Outcomes,
  StreamFrame,
} from "../../model/operation.ts";
import { isTerminal } from "../../model/task.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { activationHeaders, createCall, requireCapability } from "../shared/http/requests.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { toProtoCard } from "./proto/card.ts";
import { toProtoOutcome, toProtoPushPage, toProtoTask, toProtoTaskPushConfig } from "./proto/encode.ts";
import { decodeRequest } from "./proto/requests.ts";
import type { ProtoTypes } from "./proto/schema.ts";
import { EXTENSIONS_HEADER, requestedExtensions } from "./service-parameters.ts";

/** From proto request to response message, shared by both proto bindings. */

type Headers = Readonly<Record<string, string | undefined>>;

export type ProtoResponse =
  | NamedMessage<"SendMessageResponse">
  | NamedMessage<"Task">
  | NamedMessage<"TaskPushNotificationConfig">
  | NamedMessage<"ListTaskPushNotificationConfigResponse">
  | NamedMessage<"AgentCard">
  | { readonly name: "nothing" };

interface NamedMessage<Name extends keyof ProtoTypes> {
  readonly name: Name;
  readonly value: ProtoTypes[Name];
}

export interface ProtoReply {
  readonly kind: OperationKind;
  readonly answer: ProtoResponse | FrameStream;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export function isFrameStream(answer: ProtoReply["answer"]): answer is FrameStream {
  return Symbol.asyncIterator in answer;
}

/** Throws errors that the binding encodes. */
export async function serveRequest(
  kind: OperationKind,
  request: unknown,
  headers: Headers,
  context: ServeContext,
  options: ReadOptions,
  service: AgentService = context.service,
): Promise<ProtoReply> {
  requireCapability(kind, service);
  const decoded = decodeRequest(kind, request, { options, lastEventId: headers["last-event-id"] });
  if (decoded.losses.length > 0) context.report(decoded.losses);
  const operation = decoded.value;
  const invoked = await invoke(operation, headers, context, service);
  const losses: Loss[] = [];
  const answer = encodeResponse(operation, invoked.outcome, losses);
  if (losses.length > 0) context.report(losses);
  return { kind, answer, headers: invoked.headers };
}

/** `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union. */
function encodeResponse(operation: Operation, outcome: OutcomeOf<Operation>, losses: Loss[]): ProtoReply["answer"] {
  switch (operation.kind) {
    case "send":
      return { name: "SendMessageResponse", value: toProtoOutcome(outcome as Outcomes["send"], losses) };
    case "get":
    case "cancel":
      return { name: "Task", value: toProtoTask(outcome as Outcomes["get"], losses) };
    case "push-create":
    case "push-get": {
      const value = toProtoTaskPushConfig(outcome as Outcomes["push-get"], operation.taskId);
      return { name: "TaskPushNotificationConfig", value };
    }
    case "push-list": {
      const value = toProtoPushPage(outcome as Outcomes["push-list"], operation.taskId);
      return { name: "ListTaskPushNotificationConfigResponse", value };
    }
    case "extended-card": {
      const card = toProtoCard(outcome as Outcomes["extended-card"]);
      losses.push(...card.losses);
      return { name: "AgentCard", value: card.value };
    }
    case "stream":
    case "subscribe":
      return outcome as FrameStream;
    case "push-delete":
    case "list":
      return { name: "nothing" };
  }
}

export const DIALECT_NAME = "a2a-v03";

interface Invoked<O extends Operation> {
  readonly outcome: OutcomeOf<O>;
  /** Additional headers of the reply. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** `headers` may also be gRPC metadata. `service` differs from the context's if the request names an agent. */
export async function invoke<O extends Operation>(
  operation: O,
  headers: Readonly<Record<string, string | undefined>>,
  context: ServeContext,
  service: AgentService = context.service,
): Promise<Invoked<O>> {
  const extensions = requestedExtensions(headers);
  const call = createCall(operation, headers, context, DIALECT_NAME, extensions);
  const outcome = await service
    .dispatch(operation, call)
    .catch((error: unknown) => showEndedTask(operation, call, service, error));
  return { outcome, headers: activationHeaders(service, extensions, EXTENSIONS_HEADER) };
}

/**
 * In 0.3, subscribing to a task that has ended returns the task and ends the stream; 1.0 refuses. Any other error is
 * passed on.
 */
async function showEndedTask<O extends Operation>(
  operation: O,
  call: CallContext,
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
