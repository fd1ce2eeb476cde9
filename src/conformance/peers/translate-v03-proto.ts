/** A2A 0.3 over HTTP+JSON and gRPC: the JSON form of its protobuf messages. */

import { isObject } from "../../model/json.ts";
import { type Fields, fieldsOf, listOf, textOf, withoutUndefined } from "../json.ts";
import type { Translation } from "./peer.ts";
import { toPushConfig } from "./translate-v03-json.ts";

const taskName = (taskId: unknown): string => `tasks/${String(taskId ?? "")}`;
const configName = (taskId: unknown, id: unknown): string =>
  `${taskName(taskId)}/pushNotificationConfigs/${String(id ?? "")}`;

export const TRANSLATION_V03_PROTO: Translation = {
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
      case "GetTask":
        return withoutUndefined({ name: taskName(rest.id), historyLength: rest.historyLength });
      case "CancelTask":
      case "SubscribeToTask":
        return { name: taskName(rest.id) };
      case "CreateTaskPushNotificationConfig": {
        const { id, taskId, ...config } = rest;
        const name = configName(taskId, id);
        const pushNotificationConfig = withoutUndefined({ id, ...toPushConfig(config) });
        return withoutUndefined({ parent: taskName(taskId), configId: id, config: { name, pushNotificationConfig } });
      }
      case "GetTaskPushNotificationConfig":
      case "DeleteTaskPushNotificationConfig":
        return { name: configName(rest.taskId, rest.id) };
      case "ListTaskPushNotificationConfigs":
        return { parent: taskName(rest.taskId) };
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
        return { configs: listOf(fieldsOf(wire).configs).map(fromPushConfig) };
      default:
        return wire;
    }
  },

  decodeEvent: fromEvent,
};

function toMessage(message: Fields): Fields {
  const { parts, ...rest } = message;
  return withoutUndefined({ ...rest, content: Array.isArray(parts) ? parts.map(toPart) : parts });
}

function toPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { data, filename, mediaType, metadata, raw, text, url } = part;
  if (text !== undefined) return withoutUndefined({ text, metadata });
  if (data !== undefined) return withoutUndefined({ data: { data }, metadata });
  if (raw === undefined && url === undefined) return part;
  const file = withoutUndefined({ fileWithBytes: raw, fileWithUri: url, name: filename, mimeType: mediaType });
  return withoutUndefined({ file, metadata });
}

function toConfiguration(configuration: Fields): Fields {
  const { returnImmediately, taskPushNotificationConfig, ...rest } = configuration;
  return withoutUndefined({
    ...rest,
    blocking: returnImmediately !== true,
    pushNotification: isObject(taskPushNotificationConfig) ? toPushConfig(taskPushNotificationConfig) : undefined,
  });
}

function fromState(state: unknown): unknown {
  return state === "TASK_STATE_CANCELLED" ? "TASK_STATE_CANCELED" : state;
}

function fromTask(task: Fields): Fields {
  const { artifacts, history, status, ...rest } = task;
  return withoutUndefined({
    ...rest,
    status: isObject(status) ? fromStatus(status) : status,
    artifacts: Array.isArray(artifacts) ? artifacts.map(fromArtifact) : artifacts,
    history: Array.isArray(history) ? history.map(fromMessage) : history,
  });
}

function fromStatus(status: Fields): Fields {
  const { message, state, update, ...rest } = status;
  const content = message ?? update;
  return withoutUndefined({
    state: fromState(state),
    message: isObject(content) ? fromMessage(content) : content,
    ...rest,
  });
}

function fromArtifact(artifact: unknown): unknown {
  if (!isObject(artifact)) return artifact;
  const { parts, ...rest } = artifact;
  return { ...rest, parts: Array.isArray(parts) ? parts.map(fromPart) : parts };
}

function fromMessage(message: unknown): Fields {
  const { content, parts, ...rest } = fieldsOf(message);
  const items = content ?? parts;
  return { ...rest, parts: Array.isArray(items) ? items.map(fromPart) : items };
}

function fromPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { data, file, ...rest } = part;
  if (isObject(file)) {
    const { fileWithBytes, fileWithUri, mimeType, name } = file;
    return withoutUndefined({ ...rest, raw: fileWithBytes, url: fileWithUri, filename: name, mediaType: mimeType });
  }
  return isObject(data) ? { ...rest, data: data.data } : rest;
}

function fromEvent(wire: unknown): Fields {
  const { artifactUpdate, message, msg, statusUpdate, task } = fieldsOf(wire);
  const event: Record<string, unknown> = {};
  if (isObject(task)) event.task = fromTask(task);
  const content = message ?? msg;
  if (isObject(content)) event.message = fromMessage(content);
  if (isObject(statusUpdate)) {
    const { final: _final, status, ...rest } = statusUpdate;
    event.statusUpdate = { ...rest, status: isObject(status) ? fromStatus(status) : status };
  }
  if (isObject(artifactUpdate)) {
    const { artifact, ...rest } = artifactUpdate;
    event.artifactUpdate = { ...rest, artifact: fromArtifact(artifact) };
  }
  return event;
}

/** The ids of a push config are in its name. */
function fromPushConfig(wire: unknown): Fields {
  const { name, pushNotificationConfig } = fieldsOf(wire);
  const [, taskId, , id] = /^tasks\/([^/]+)(\/pushNotificationConfigs\/(.+))?$/.exec(textOf(name) ?? "") ?? [];
  return withoutUndefined({ taskId, id, ...fieldsOf(pushNotificationConfig) });
}
