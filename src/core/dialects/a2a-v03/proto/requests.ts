/** Proto requests as operations, and back. HTTP splits them into path, query and body; here they are whole. */

import { invalidParams, ProtocolError } from "../../../model/errors.ts";
import { type Loss, toLoss } from "../../../model/loss.ts";
import type { Operation, OperationKind, SendInput } from "../../../model/operation.ts";
import { parseLastEventId } from "../../shared/http/requests.ts";
import type { ReadOptions } from "../../shared/proto/json-reading.ts";
import { PROTO_LOSSES } from "../losses.ts";
import {
  defaultPushConfigId,
  parseTaskName,
  pushConfigName,
  requirePushConfigName,
  taskName,
} from "../resource-names.ts";
import { fromProtoConfiguration, fromProtoMessage, fromProtoTaskPushConfig } from "./decode.ts";
import { toProtoConfiguration, toProtoMessage, toProtoTaskPushConfig } from "./encode.ts";
import { type ProtoTypes, readProto } from "./schema.ts";

/** 0.3 lists a path for it, but defines neither request nor response. */
function listNotSupported(): ProtocolError {
  return new ProtocolError("UNSUPPORTED_OPERATION", "Tasks cannot be listed in A2A 0.3.");
}

/** `lastEventId` is the last event that the caller has received; only `subscribe` uses it. */
export function decodeRequest(
  kind: OperationKind,
  request: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
  losses: Loss[],
): Operation {
  switch (kind) {
    case "send":
    case "stream":
      return { kind, ...sendInput(readProto("SendMessageRequest", request, options), losses) };
    case "get": {
      const { name, historyLength } = readProto("GetTaskRequest", request, options);
      return { kind, id: parseTaskName(name, "name"), historyLength };
    }
    case "cancel":
      return { kind, id: parseTaskName(readProto("CancelTaskRequest", request, options).name, "name") };
    case "subscribe": {
      const id = parseTaskName(readProto("TaskSubscriptionRequest", request, options).name, "name");
      const after = parseLastEventId(lastEventId);
      return { kind, id, after };
    }
    case "push-create": {
      const { parent, configId, config } = readProto("CreateTaskPushNotificationConfigRequest", request, options);
      const taskId = parseTaskName(parent, "parent");
      const read = fromProtoTaskPushConfig(config, losses);
      return { kind, taskId, config: { ...read, taskId, id: configId ?? read.id ?? defaultPushConfigId(taskId) } };
    }
    case "push-get":
    case "push-delete":
      return { kind, ...requirePushConfigName(readProto(REQUEST_NAMES[kind], request, options).name) };
    case "push-list": {
      const { parent, ...page } = readProto("ListTaskPushNotificationConfigRequest", request, options);
      return { kind, taskId: parseTaskName(parent, "parent"), ...page };
    }
    case "extended-card":
      return { kind };
    case "list":
      throw listNotSupported();
  }
}

function sendInput({ message, configuration, metadata }: ProtoTypes["SendMessageRequest"], losses: Loss[]): SendInput {
  if (message.role === undefined) throw invalidParams("message.role", "is required");
  const read = configuration === undefined ? undefined : fromProtoConfiguration(configuration, losses);
  return {
    message: fromProtoMessage(message, losses),
    configuration: read,
    metadata,
  };
}

export const REQUEST_NAMES = {
  send: "SendMessageRequest",
  stream: "SendMessageRequest",
  get: "GetTaskRequest",
  cancel: "CancelTaskRequest",
  subscribe: "TaskSubscriptionRequest",
  "push-create": "CreateTaskPushNotificationConfigRequest",
  "push-get": "GetTaskPushNotificationConfigRequest",
  "push-list": "ListTaskPushNotificationConfigRequest",
  "push-delete": "DeleteTaskPushNotificationConfigRequest",
  "extended-card": "GetAgentCardRequest",
} as const satisfies Record<Exclude<OperationKind, "list">, keyof ProtoTypes>;

/** Undefined members are omitted by both codecs. Throws UNSUPPORTED_OPERATION for operations that 0.3 does not have. */
export function encodeRequest(operation: Operation, losses: Loss[]): object {
  switch (operation.kind) {
    case "send":
    case "stream":
      return {
        message: toProtoMessage(operation.message, losses, "message"),
        configuration: toProtoConfiguration(operation.configuration),
        metadata: operation.metadata,
      };
    case "get":
      return { name: taskName(operation.id), historyLength: operation.historyLength };
    case "cancel":
      if (operation.metadata !== undefined) losses.push(toLoss(PROTO_LOSSES.cancelMetadata, "metadata"));
      return { name: taskName(operation.id) };
    case "subscribe":
      return { name: taskName(operation.id) };
    case "push-create": {
      const { config, taskId } = operation;
      return { parent: taskName(taskId), configId: config.id, config: toProtoTaskPushConfig(config, taskId) };
    }
    case "push-get":
    case "push-delete":
      return { name: pushConfigName(operation.taskId, operation.id) };
    case "push-list": {
      const { taskId, pageSize, pageToken } = operation;
      return { parent: taskName(taskId), pageSize, pageToken };
    }
    case "extended-card":
      return {};
    case "list":
      throw listNotSupported();
  }
}
