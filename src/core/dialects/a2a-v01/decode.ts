/** Decodes requests and responses of 0.1. */

import type { StreamEvent } from "../../model/event.ts";
import { omitUndefined } from "../../model/json.ts";
import type { Lossy } from "../../model/loss.ts";
import type { Operation, OperationKind, SendConfiguration, TaskPushNotificationConfig } from "../../model/operation.ts";
import type { CodecTools } from "../contract.ts";
import { compileMethods, parseLastEventId } from "../shared/http/requests.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import {
  readPushConfig as readAnyPushConfig,
  readArtifact,
  readMessage,
  readStatus,
  readTask,
} from "../shared/legacy/decode.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { FORM } from "./encode.ts";
import { LOSSES } from "./losses.ts";

/** A task has one push config here. Its id is the task's, so that setting it again replaces it. */
export function readPushConfig(members: Members, taskId: string): TaskPushNotificationConfig {
  return { ...readAnyPushConfig(members, LOSSES.pushSchemes), id: taskId };
}

/** Only tasks have these members. Some servers return a complete task instead of a stream. */
const ONLY_IN_TASKS = ["sessionId", "artifacts", "history"];

export function readStreamEvent(members: Members): StreamEvent | undefined {
  if (ONLY_IN_TASKS.some((name) => members.raw(name) !== undefined)) return { task: readTask(members, FORM) };
  if (members.raw("artifact") === undefined && members.raw("status") === undefined) {
    members.reading.lose(LOSSES.unknownEvent);
    return undefined;
  }
  const scope = { taskId: members.requiredText("id"), contextId: "" };
  const metadata = members.struct("metadata");
  const more = metadata === undefined ? undefined : { metadata };
  if (members.raw("artifact") === undefined) {
    const status = members.requiredObject("status", (inner) => readStatus(inner, scope, FORM));
    return { statusUpdate: { ...scope, status, ...more } };
  }
  const received = members.requiredObject("artifact", (artifact) => readArtifact(artifact, FORM));
  return { artifactUpdate: { ...scope, ...received, ...more } };
}

export const METHODS = {
  "tasks/send": "send",
  "tasks/sendSubscribe": "stream",
  "tasks/get": "get",
  "tasks/cancel": "cancel",
  "tasks/resubscribe": "subscribe",
  "tasks/pushNotification/set": "push-create",
  "tasks/pushNotification/get": "push-get",
} as const satisfies Record<string, OperationKind>;

type SupportedKind = (typeof METHODS)[keyof typeof METHODS];

export const { kindOfMethod } = compileMethods("0.1", METHODS);

export type SupportedOperation = Extract<Operation, { readonly kind: SupportedKind }>;

/** `lastEventId` is the last event that the caller has received; only `subscribe` uses it. */
export function decodeRequest(
  kind: SupportedKind,
  params: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
  ids: CodecTools["ids"],
): Lossy<SupportedOperation> {
  return readRequest(params, options, (members): SupportedOperation => {
    const id = members.requiredText("id");
    switch (kind) {
      case "send":
      case "stream":
        return readSend(kind, id, members, ids);
      case "get":
        return { kind, id, historyLength: members.count("historyLength") };
      case "cancel":
        return { kind, id, metadata: members.struct("metadata") };
      case "subscribe":
        return { kind, id, after: parseLastEventId(lastEventId) };
      case "push-create": {
        const read = (inner: Members) => readPushConfig(inner, id);
        const config = { ...members.requiredObject("pushNotificationConfig", read), taskId: id };
        return { kind, taskId: id, config };
      }
      case "push-get":
        return { kind, taskId: id, id };
    }
  });
}

function readSend(
  kind: "send" | "stream",
  chosenId: string,
  members: Members,
  ids: CodecTools["ids"],
): SupportedOperation {
  const sessionId = members.text("sessionId");
  const message = members.requiredObject("message", (inner) => readMessage(inner, FORM, ids.message));
  if (sessionId !== undefined) message.contextId = sessionId;
  return {
    kind,
    message,
    chosenId,
    alwaysTask: true as const,
    configuration: readConfiguration(members, chosenId),
    metadata: members.struct("metadata"),
  };
}

/** Undefined if every member is at its default. */
function readConfiguration(members: Members, taskId: string): SendConfiguration | undefined {
  const configuration = omitUndefined({
    // Not in the specification, but sent by libraries of that time.
    acceptedOutputModes: members.texts("acceptedOutputModes"),
    taskPushNotificationConfig: members.object("pushNotification", (inner) => readPushConfig(inner, taskId)),
    historyLength: members.count("historyLength"),
  });
  return Object.keys(configuration).length === 0 ? undefined : configuration;
}
