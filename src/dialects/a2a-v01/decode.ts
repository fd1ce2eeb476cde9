/** Decodes requests and responses of 0.1. */

import type { StreamEvent } from "../../model/event.ts";
import type { Writable } from "../../model/json.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Operation, OperationKind, SendConfiguration, TaskPushNotificationConfig } from "../../model/operation.ts";
import type { CodecTools } from "../contract.ts";
import { compileMethods, parseLastEventId } from "../shared/http/requests.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import { readArtifact, readMessage, readStatus, readTask } from "../shared/legacy/decode.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { FORM } from "./encode.ts";
import { LOSSES } from "./losses.ts";

export function readPushConfig(members: Members): TaskPushNotificationConfig {
  const config: Writable<TaskPushNotificationConfig> = { url: members.requiredText("url") };
  const token = members.text("token");
  const authentication = members.object("authentication", readPushAuthentication);
  if (token !== undefined) config.token = token;
  if (authentication !== undefined) config.authentication = authentication;
  return config;
}

function readPushAuthentication(members: Members): TaskPushNotificationConfig["authentication"] {
  const [scheme, ...others] = members.texts("schemes") ?? [];
  const credentials = members.text("credentials");
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    members.reading.lose(LOSSES.pushSchemes);
  }
  if (scheme === undefined) return undefined;
  return credentials === undefined ? { scheme } : { scheme, credentials };
}

/** Only tasks have these members. Some servers return a complete task instead of a stream. */
const ONLY_IN_TASKS = ["sessionId", "artifacts", "history"];

export function readStreamEvent(members: Members): StreamEvent {
  if (ONLY_IN_TASKS.some((name) => members.raw(name) !== undefined)) return { task: readTask(members, FORM) };
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

export const { kindOfMethod, methodOf } = compileMethods("0.1", METHODS);

export type SupportedOperation = Extract<Operation, { readonly kind: SupportedKind }>;

/** `lastEventId` is the last event that the caller has received; only `subscribe` uses it. */
export function decodeRequest(
  kind: SupportedKind,
  params: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
  ids: CodecTools["ids"],
): Lossy<SupportedOperation> {
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
      const after = parseLastEventId(lastEventId);
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

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SupportedOperation {
  const chosenId = members.requiredText("id");
  const sessionId = members.text("sessionId");
  const message = members.requiredObject("message", (inner) => readMessage(inner, FORM, ids.message));
  if (sessionId !== undefined) message.contextId = sessionId;
  const configuration = readConfiguration(members, chosenId);
  const metadata = members.struct("metadata");
  return {
    kind,
    message,
    chosenId,
    alwaysTask: true,
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** A task has one push config here. Its id is the task's, so that setting it again replaces it. */
function readConfiguration(members: Members, taskId: string): SendConfiguration | undefined {
  const historyLength = members.count("historyLength");
  const pushConfig = members.object("pushNotification", readPushConfig);
  // Not in the specification, but sent by libraries of that time.
  const acceptedOutputModes = members.texts("acceptedOutputModes");
  if (historyLength === undefined && pushConfig === undefined && acceptedOutputModes === undefined) return undefined;
  return {
    ...(acceptedOutputModes !== undefined && { acceptedOutputModes }),
    ...(pushConfig !== undefined && { taskPushNotificationConfig: { id: taskId, ...pushConfig } }),
    ...(historyLength !== undefined && { historyLength }),
  };
}
