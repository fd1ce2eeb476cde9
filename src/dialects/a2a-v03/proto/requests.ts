/** Proto requests as operations, and back. HTTP splits them into path, query and body; here they are whole. */

import { invalidParams, ProtocolError } from "../../../model/errors.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import type { Operation, OperationKind, SendInput, TaskPushNotificationConfig } from "../../../model/operation.ts";
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

/** The context of a request. */
interface RequestContext {
  readonly options: ReadOptions;
  /** The last event that the caller has received; only `subscribe` uses it. */
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: OperationKind,
  request: unknown,
  { options, lastEventId }: RequestContext,
): Lossy<Operation> {
  const losses: Loss[] = [];
  return { value: operationOf(), losses };

  function operationOf(): Operation {
    switch (kind) {
      case "send":
      case "stream": {
        return { kind, ...sendInput(readProto("SendMessageRequest", request, options), losses) };
      }
      case "get": {
        const { name, historyLength } = readProto("GetTaskRequest", request, options);
        const id = parseTaskName(name, "name");
        return historyLength === undefined ? { kind, id } : { kind, id, historyLength };
      }
      case "cancel":
        return { kind, id: parseTaskName(readProto("CancelTaskRequest", request, options).name, "name") };
      case "subscribe": {
        const id = parseTaskName(readProto("TaskSubscriptionRequest", request, options).name, "name");
        const after = parseLastEventId(lastEventId);
        return after === undefined ? { kind, id } : { kind, id, after };
      }
      case "push-create": {
        const { parent, configId, config } = readProto("CreateTaskPushNotificationConfigRequest", request, options);
        const taskId = parseTaskName(parent, "parent");
        return { kind, taskId, config: withConfigId(fromProtoTaskPushConfig(config, losses), taskId, configId) };
      }
      case "push-get":
        return {
          kind,
          ...requirePushConfigName(readProto("GetTaskPushNotificationConfigRequest", request, options).name),
        };
      case "push-delete":
        return {
          kind,
          ...requirePushConfigName(readProto("DeleteTaskPushNotificationConfigRequest", request, options).name),
        };
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
}

function sendInput({ message, configuration, metadata }: ProtoTypes["SendMessageRequest"], losses: Loss[]): SendInput {
  if (message.role === undefined) throw invalidParams("message.role", "is required");
  const read = configuration === undefined ? undefined : fromProtoConfiguration(configuration, losses);
  return {
    message: fromProtoMessage(message, losses),
    ...(read !== undefined && { configuration: read }),
    ...(metadata !== undefined && { metadata }),
  };
}

function withConfigId(
  config: TaskPushNotificationConfig,
  taskId: string,
  configId: string | undefined,
): TaskPushNotificationConfig {
  return { ...config, taskId, id: configId ?? config.id ?? defaultPushConfigId(taskId) };
}

/** The request message of each operation. */
export type ProtoRequest = {
  readonly [Kind in Exclude<OperationKind, "list">]: {
    readonly kind: Kind;
    readonly request: ProtoTypes[(typeof REQUEST_NAMES)[Kind]];
  };
}[Exclude<OperationKind, "list">];

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

/** Throws UNSUPPORTED_OPERATION for operations that 0.3 does not have. */
export function encodeRequest(operation: Operation, losses: Loss[]): ProtoRequest {
  const { kind } = operation;
  switch (kind) {
    case "send":
    case "stream": {
      const { message, configuration, metadata } = operation;
      const request = {
        message: toProtoMessage(message, losses, "message"),
        configuration: toProtoConfiguration(configuration),
        ...(metadata !== undefined && { metadata }),
      };
      return { kind, request };
    }
    case "get": {
      const { id, historyLength } = operation;
      return { kind, request: { name: taskName(id), ...(historyLength !== undefined && { historyLength }) } };
    }
    case "cancel":
      if (operation.metadata !== undefined) losses.push(toLoss(PROTO_LOSSES.cancelMetadata, "metadata"));
      return { kind, request: { name: taskName(operation.id) } };
    case "subscribe":
      return { kind, request: { name: taskName(operation.id) } };
    case "push-create": {
      const { config, taskId } = operation;
      const request = { parent: taskName(taskId), config: toProtoTaskPushConfig(config, taskId) };
      return { kind, request: config.id === undefined ? request : { ...request, configId: config.id } };
    }
    case "push-get":
    case "push-delete":
      return { kind, request: { name: pushConfigName(operation.taskId, operation.id) } };
    case "push-list": {
      const { taskId, pageSize, pageToken } = operation;
      const page = { ...(pageSize !== undefined && { pageSize }), ...(pageToken !== undefined && { pageToken }) };
      return { kind, request: { parent: taskName(taskId), ...page } };
    }
    case "extended-card":
      return { kind, request: {} };
    case "list":
      throw listNotSupported();
  }
}
