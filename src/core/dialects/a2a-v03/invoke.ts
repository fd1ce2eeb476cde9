/** From operation to outcome, shared by all bindings. */

import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type {
  AnswersByKind,
  CallContext,
  FrameStream,
  Operation,
  OperationKind,
  OutcomeOf,
  StreamFrame,
} from "../../model/operation.ts";
import { isTerminal } from "../../model/task.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { activationHeaders, createCall, requireCapability } from "../shared/http/requests.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { toProtoCard } from "./proto/card.ts";
import { toProtoOutcome, toProtoPushPage, toProtoTask, toProtoTaskPushConfig } from "./proto/encode.ts";
import { decodeRequest } from "./proto/requests.ts";
import { EXTENSIONS_HEADER, requestedExtensions } from "./service-parameters.ts";

export const DIALECT_NAME = "a2a-v03";

type Headers = Readonly<Record<string, string | undefined>>;

export interface ProtoReply {
  readonly kind: OperationKind;
  /** A message of the proto in an operation with one response; undefined if it is empty. */
  readonly answer: object | FrameStream | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export function isFrameStream(answer: ProtoReply["answer"]): answer is FrameStream {
  return answer !== undefined && Symbol.asyncIterator in answer;
}

/** From proto request to response message, shared by both proto bindings. Throws errors that the binding encodes. */
export async function serveRequest(
  kind: OperationKind,
  request: unknown,
  headers: Headers,
  context: ServeContext,
  options: ReadOptions,
  service: AgentService = context.service,
): Promise<ProtoReply> {
  requireCapability(kind, service);
  const losses: Loss[] = [];
  const operation = decodeRequest(kind, request, options, headers["last-event-id"], losses);
  if (losses.length > 0) context.report(losses.splice(0));
  const invoked = await invoke(operation, headers, context, service);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  const answer = encodeAnswer({ kind, operation, outcome: invoked.outcome } as Answer, losses);
  if (losses.length > 0) context.report(losses);
  return { kind, answer, headers: invoked.headers };
}

type Answer = AnswersByKind[OperationKind];

function encodeAnswer({ kind, operation, outcome }: Answer, losses: Loss[]): ProtoReply["answer"] {
  switch (kind) {
    case "send":
      return toProtoOutcome(outcome, losses);
    case "get":
    case "cancel":
      return toProtoTask(outcome, losses);
    case "push-create":
    case "push-get":
      return toProtoTaskPushConfig(outcome, operation.taskId);
    case "push-list":
      return toProtoPushPage(outcome, operation.taskId);
    case "extended-card": {
      const card = toProtoCard(outcome);
      losses.push(...card.losses);
      return card.value;
    }
    case "stream":
    case "subscribe":
      return outcome;
    case "push-delete":
    case "list":
      return undefined;
  }
}

interface Invoked<O extends Operation> {
  readonly outcome: OutcomeOf<O>;
  /** Additional headers of the reply. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** `headers` may also be gRPC metadata. `service` differs from the context's if the request names an agent. */
export async function invoke<O extends Operation>(
  operation: O,
  headers: Headers,
  context: ServeContext,
  service: AgentService = context.service,
): Promise<Invoked<O>> {
  const extensions = requestedExtensions(headers);
  const call = { ...createCall(operation, headers, context, DIALECT_NAME, extensions), cancelsOnce: true };
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
