/** From a request of the proto to the message that answers it, the same for both bindings. */
import type { Loss } from "../../model/loss.ts";
import type { FrameStream, Operation, OperationKind, OutcomeOf, Outcomes } from "../../model/operation.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import type { ReadOptions } from "../shared/proto-json-reading.ts";
import { invoke, requireCapability } from "./invoke.ts";
import { toProtoCard } from "./proto-card.ts";
import { toProtoOutcome, toProtoPushPage, toProtoTask, toProtoTaskPushConfig } from "./proto-encode.ts";
import { decodeRequest } from "./proto-requests.ts";
import type { ProtoTypes } from "./proto-schema.ts";

type Headers = Readonly<Record<string, string | undefined>>;

export type ProtoAnswer =
  | Message<"SendMessageResponse">
  | Message<"Task">
  | Message<"TaskPushNotificationConfig">
  | Message<"ListTaskPushNotificationConfigResponse">
  | Message<"AgentCard">
  | { readonly name: "nothing" };

interface Message<Name extends keyof ProtoTypes> {
  readonly name: Name;
  readonly value: ProtoTypes[Name];
}

export interface Served {
  readonly kind: OperationKind;
  readonly answer: ProtoAnswer | FrameStream;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export function isStream(answer: Served["answer"]): answer is FrameStream {
  return Symbol.asyncIterator in answer;
}

/** Throws what the binding then says in its own way. */
export async function serveRequest(
  kind: OperationKind,
  request: unknown,
  headers: Headers,
  context: ServeContext,
  options: ReadOptions,
  service: AgentService = context.service,
): Promise<Served> {
  requireCapability(kind, service);
  const decoded = decodeRequest(kind, request, { options, lastEventId: headers["last-event-id"] });
  if (decoded.losses.length > 0) context.report(decoded.losses);
  const operation = decoded.value;
  const invoked = await invoke(operation, headers, context, service);
  const losses: Loss[] = [];
  const answer = answerOf(operation, invoked.outcome, losses);
  if (losses.length > 0) context.report(losses);
  return { kind, answer, headers: invoked.headers };
}

/** `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union. */
function answerOf(operation: Operation, outcome: OutcomeOf<Operation>, losses: Loss[]): Served["answer"] {
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
