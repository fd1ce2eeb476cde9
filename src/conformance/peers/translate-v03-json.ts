/** A2A 0.3 over JSON-RPC: objects distinguished by `kind`, states and roles in lower case. */

import { isObject } from "../../model/json.ts";
import { type Fields, fieldsOf, listOf, textOf, withoutUndefined } from "../json.ts";
import type { OperationName, Translation } from "./peer.ts";

export const METHODS_V03: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "message/send",
  SendStreamingMessage: "message/stream",
  GetTask: "tasks/get",
  CancelTask: "tasks/cancel",
  SubscribeToTask: "tasks/resubscribe",
  CreateTaskPushNotificationConfig: "tasks/pushNotificationConfig/set",
  GetTaskPushNotificationConfig: "tasks/pushNotificationConfig/get",
  ListTaskPushNotificationConfigs: "tasks/pushNotificationConfig/list",
  DeleteTaskPushNotificationConfig: "tasks/pushNotificationConfig/delete",
  GetExtendedAgentCard: "agent/getAuthenticatedExtendedCard",
};

const ROLES_TO_V03: Readonly<Record<string, string>> = { ROLE_USER: "user", ROLE_AGENT: "agent" };
const ROLES_FROM_V03: Readonly<Record<string, string>> = { user: "ROLE_USER", agent: "ROLE_AGENT" };

function fromState(state: unknown): unknown {
  return typeof state === "string" ? `TASK_STATE_${state.toUpperCase().replaceAll("-", "_")}` : state;
}

export const TRANSLATION_V03_JSON: Translation = {
  encodeRequest(operation, params) {
    const { tenant: _tenant, ...rest } = params;
    switch (operation) {
      case "SendMessage":
      case "SendStreamingMessage":
        return withoutUndefined({
          ...rest,
          message: isObject(rest.message) ? toMessage(rest.message) : rest.message,
          configuration: isObject(rest.configuration) ? toConfiguration(rest.configuration) : rest.configuration,
        });
      case "CreateTaskPushNotificationConfig": {
        const { taskId, ...config } = rest;
        return withoutUndefined({ taskId, pushNotificationConfig: toPushConfig(config) });
      }
      case "GetTaskPushNotificationConfig":
      case "DeleteTaskPushNotificationConfig":
        return withoutUndefined({ id: rest.taskId, pushNotificationConfigId: rest.id });
      case "ListTaskPushNotificationConfigs":
        return withoutUndefined({ id: rest.taskId });
      default:
        return rest;
    }
  },

  decodeResult(operation, wire) {
    switch (operation) {
      case "SendMessage":
        return fromEvent(wire);
      case "GetTask":
      case "CancelTask":
        return fromTask(fieldsOf(wire));
      case "CreateTaskPushNotificationConfig":
      case "GetTaskPushNotificationConfig":
        return fromPushConfig(wire);
      case "ListTaskPushNotificationConfigs":
        return { configs: listOf(wire).map(fromPushConfig) };
      default:
        return wire;
    }
  },

  decodeEvent: fromEvent,
};

function toMessage(message: Fields): Fields {
  const { parts, role, ...rest } = message;
  return withoutUndefined({
    kind: "message",
    ...rest,
    role: ROLES_TO_V03[textOf(role) ?? ""] ?? role,
    parts: Array.isArray(parts) ? parts.map(toPart) : parts,
  });
}

function toPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { data, filename, mediaType, metadata, raw, text, url } = part;
  if (text !== undefined) return withoutUndefined({ kind: "text", text, metadata });
  if (data !== undefined) return withoutUndefined({ kind: "data", data, metadata });
  if (raw === undefined && url === undefined) return part;
  const file = withoutUndefined({ bytes: raw, uri: url, name: filename, mimeType: mediaType });
  return withoutUndefined({ kind: "file", file, metadata });
}

function toConfiguration(configuration: Fields): Fields {
  const { returnImmediately, taskPushNotificationConfig, ...rest } = configuration;
  return withoutUndefined({
    ...rest,
    blocking: returnImmediately !== true,
    pushNotificationConfig: isObject(taskPushNotificationConfig) ? toPushConfig(taskPushNotificationConfig) : undefined,
  });
}

export function toPushConfig(config: Fields): Fields {
  const { authentication, ...rest } = config;
  if (!isObject(authentication)) return rest;
  const { credentials, scheme } = authentication;
  return { ...rest, authentication: withoutUndefined({ schemes: [scheme], credentials }) };
}

function fromTask(task: Fields): Fields {
  const { artifacts, history, kind: _kind, status, ...rest } = task;
  return withoutUndefined({
    ...rest,
    status: isObject(status) ? fromStatus(status) : status,
    artifacts: Array.isArray(artifacts) ? artifacts.map(fromArtifact) : artifacts,
    history: Array.isArray(history) ? history.map(fromMessage) : history,
  });
}

function fromStatus(status: Fields): Fields {
  const { message, state, ...rest } = status;
  return withoutUndefined({
    state: fromState(state),
    message: isObject(message) ? fromMessage(message) : message,
    ...rest,
  });
}

function fromArtifact(artifact: unknown): unknown {
  if (!isObject(artifact)) return artifact;
  const { parts, ...rest } = artifact;
  return { ...rest, parts: Array.isArray(parts) ? parts.map(fromPart) : parts };
}

function fromMessage(message: unknown): Fields {
  const { kind: _kind, parts, role, ...rest } = fieldsOf(message);
  const canonicalRole = ROLES_FROM_V03[textOf(role) ?? ""] ?? role;
  return { ...rest, role: canonicalRole, parts: Array.isArray(parts) ? parts.map(fromPart) : parts };
}

function fromPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { file, kind: _kind, ...rest } = part;
  if (!isObject(file)) return rest;
  const { bytes, mimeType, name, uri } = file;
  return withoutUndefined({ raw: bytes, url: uri, filename: name, mediaType: mimeType, metadata: rest.metadata });
}

/** An answer or event becomes the one member of 1.0 that its `kind` stands for. */
function fromEvent(wire: unknown): Fields {
  const value = fieldsOf(wire);
  switch (value.kind) {
    case "task":
      return { task: fromTask(value) };
    case "message":
      return { message: fromMessage(value) };
    case "status-update": {
      const { kind: _kind, final: _final, status, ...rest } = value;
      return { statusUpdate: { ...rest, status: isObject(status) ? fromStatus(status) : status } };
    }
    case "artifact-update": {
      const { kind: _kind, artifact, ...rest } = value;
      return { artifactUpdate: { ...rest, artifact: fromArtifact(artifact) } };
    }
    default:
      return {};
  }
}

function fromPushConfig(wire: unknown): Fields {
  const { pushNotificationConfig, taskId } = fieldsOf(wire);
  return { taskId, ...fieldsOf(pushNotificationConfig) };
}
