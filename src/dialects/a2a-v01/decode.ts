/** Requests of 0.1 as operations of the model. */
import { ProtocolError } from "../../model/errors.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { Operation, OperationKind, SendConfiguration } from "../../model/operation.ts";
import type { CodecTools } from "../contract.ts";
import { type Members, readRequest } from "../shared/early-reading.ts";
import type { ReadOptions } from "../shared/proto-json-reading.ts";
import { cursorIn } from "../shared/request-headers.ts";
import { readMessage, readPushConfig } from "./heard.ts";

export const METHODS = {
  "tasks/send": "send",
  "tasks/sendSubscribe": "stream",
  "tasks/get": "get",
  "tasks/cancel": "cancel",
  "tasks/resubscribe": "subscribe",
  "tasks/pushNotification/set": "push-create",
  "tasks/pushNotification/get": "push-get",
} as const satisfies Record<string, OperationKind>;

export type SpokenKind = (typeof METHODS)[keyof typeof METHODS];

const KIND_OF_METHOD: ReadonlyMap<string, SpokenKind> = new Map(Object.entries(METHODS));

export function kindOfMethod(method: string): SpokenKind {
  const kind = KIND_OF_METHOD.get(method);
  if (kind === undefined) {
    throw new ProtocolError("METHOD_NOT_FOUND", "There is no such method in A2A 0.1.", { metadata: { method } });
  }
  return kind;
}

export type SpokenOperation = Extract<Operation, { readonly kind: SpokenKind }>;

/** `lastEventId` is what the caller says it has of a stream; only subscribing looks at it. */
export function decodeRequest(
  kind: SpokenKind,
  params: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
  ids: CodecTools["ids"],
): Lossy<SpokenOperation> {
  switch (kind) {
    case "send":
    case "stream":
      return readRequest(params, options, (members) => readSend(kind, members, ids));
    case "get":
      return readRequest(params, options, (members) => {
        const id = members.requiredText("id");
        const historyLength = members.count("historyLength");
        return { kind, id, ...(historyLength !== undefined && { historyLength }) };
      });
    case "cancel":
      return readRequest(params, options, (members) => {
        const id = members.requiredText("id");
        const metadata = members.struct("metadata");
        return { kind, id, ...(metadata !== undefined && { metadata }) };
      });
    case "subscribe": {
      const { value: id } = readRequest(params, options, (members) => members.requiredText("id"));
      const after = cursorIn(lastEventId);
      return { value: { kind, id, ...(after !== undefined && { after }) }, losses: NO_LOSSES };
    }
    case "push-create":
      return readRequest(params, options, (members) => {
        const taskId = members.requiredText("id");
        const config = members.requiredObject("pushNotificationConfig", readPushConfig);
        return { kind, taskId, config: { id: taskId, taskId, ...config } };
      });
    case "push-get":
      return readRequest(params, options, (members) => {
        const taskId = members.requiredText("id");
        return { kind, taskId, id: taskId };
      });
  }
}

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SpokenOperation {
  const chosenId = members.requiredText("id");
  const sessionId = members.text("sessionId");
  const said = members.requiredObject("message", (message) => readMessage(message, ids.message));
  const message: Message = sessionId === undefined ? said : { ...said, contextId: sessionId };
  const configuration = readConfiguration(members, chosenId);
  const metadata = members.struct("metadata");
  return {
    kind,
    message,
    chosenId,
    asTask: true,
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** A task has one push config here, so that it is named after the task and setting it again replaces it. */
function readConfiguration(members: Members, taskId: string): SendConfiguration | undefined {
  const historyLength = members.count("historyLength");
  const pushConfig = members.object("pushNotification", readPushConfig);
  // Not in the specification, but the libraries of its time sent it.
  const acceptedOutputModes = members.texts("acceptedOutputModes");
  if (historyLength === undefined && pushConfig === undefined && acceptedOutputModes === undefined) return undefined;
  return {
    ...(acceptedOutputModes !== undefined && { acceptedOutputModes }),
    ...(pushConfig !== undefined && { taskPushNotificationConfig: { id: taskId, ...pushConfig } }),
    ...(historyLength !== undefined && { historyLength }),
  };
}
