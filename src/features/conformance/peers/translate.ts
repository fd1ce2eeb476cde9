/**
 * Checks write requests and read answers in the form of 1.0; this converts from and to what a version sends. Requests may
 * be invalid on purpose: what a translation does not recognise it passes on unchanged.
 */

import { type Fields, fieldsOf, isObject, listOf, omitUndefined } from "../../../core/model/json.ts";
import { textOf } from "../json.ts";
import type { Binding, Version } from "../requirements.ts";
import type { OperationName } from "./peer.ts";

interface Translation {
  encodeRequest(operation: OperationName, params: Fields): Fields;
  decodeResult(operation: OperationName, wire: unknown): unknown;
  decodeEvent(wire: unknown): Fields;
}

export function translationFor(version: Version, binding: Binding): Translation {
  if (version === "1.0") return TRANSLATION_V1;
  return binding === "JSONRPC" ? TRANSLATION_V03_JSON : TRANSLATION_V03_PROTO;
}

const TRANSLATION_V1: Translation = {
  encodeRequest: (_operation, params) => params,
  decodeResult: (_operation, wire) => wire,
  decodeEvent: fieldsOf,
};

/** The two forms of 0.3: that of JSON-RPC, and the JSON of its protobuf messages for HTTP+JSON and gRPC. */
interface FormV03 {
  readonly parts: "parts" | "content";
  readonly bytes: "bytes" | "fileWithBytes";
  readonly uri: "uri" | "fileWithUri";
  readonly pushConfig: "pushNotificationConfig" | "pushNotification";
  /** The member that distinguishes objects, if there is one. */
  readonly kindOf: (kind: string) => Fields;
  readonly toRole: (role: unknown) => unknown;
  readonly fromRole: (role: unknown) => unknown;
  readonly fromState: (state: unknown) => unknown;
  readonly toData: (data: unknown) => unknown;
  readonly fromData: (data: unknown) => unknown;
  /** Requests other than sends. */
  readonly toParams: (operation: OperationName, params: Fields) => Fields;
  /** An answer or event as the one member of 1.0 that it is. */
  readonly toMember: (wire: Fields) => Fields;
  readonly pushConfigsOf: (wire: unknown) => unknown;
  readonly fromPushConfig: (wire: unknown) => Fields;
}

const ROLES_TO_V03: Readonly<Record<string, string>> = { ROLE_USER: "user", ROLE_AGENT: "agent" };
const ROLES_FROM_V03: Readonly<Record<string, string>> = { user: "ROLE_USER", agent: "ROLE_AGENT" };
const MEMBERS_OF_KINDS: Readonly<Record<string, string>> = {
  task: "task",
  message: "message",
  "status-update": "statusUpdate",
  "artifact-update": "artifactUpdate",
};

const TRANSLATION_V03_JSON = createTranslation({
  parts: "parts",
  bytes: "bytes",
  uri: "uri",
  pushConfig: "pushNotificationConfig",
  kindOf: (kind) => ({ kind }),
  toRole: (role) => ROLES_TO_V03[textOf(role) ?? ""] ?? role,
  fromRole: (role) => ROLES_FROM_V03[textOf(role) ?? ""] ?? role,
  fromState: (state) => (typeof state === "string" ? `TASK_STATE_${state.toUpperCase().replaceAll("-", "_")}` : state),
  toData: (data) => data,
  fromData: (data) => data,
  toParams(operation, params) {
    const { id, taskId, ...rest } = params;
    switch (operation) {
      case "CreateTaskPushNotificationConfig":
        return { taskId, pushNotificationConfig: toPushConfig({ ...rest, id }) };
      case "GetTaskPushNotificationConfig":
      case "DeleteTaskPushNotificationConfig":
        return { id: taskId, pushNotificationConfigId: id };
      case "ListTaskPushNotificationConfigs":
        return { id: taskId };
      default:
        return params;
    }
  },
  toMember(wire) {
    const member = MEMBERS_OF_KINDS[textOf(wire.kind) ?? ""];
    return member === undefined ? {} : { [member]: wire };
  },
  pushConfigsOf: (wire) => wire,
  fromPushConfig(wire) {
    const { pushNotificationConfig, taskId } = fieldsOf(wire);
    return { taskId, ...fieldsOf(pushNotificationConfig) };
  },
});

const taskName = (taskId: unknown): string => `tasks/${String(taskId ?? "")}`;
const configName = (taskId: unknown, id: unknown): string =>
  `${taskName(taskId)}/pushNotificationConfigs/${String(id ?? "")}`;

const TRANSLATION_V03_PROTO = createTranslation({
  parts: "content",
  bytes: "fileWithBytes",
  uri: "fileWithUri",
  pushConfig: "pushNotification",
  kindOf: () => ({}),
  toRole: (role) => role,
  fromRole: (role) => role,
  fromState: (state) => (state === "TASK_STATE_CANCELLED" ? "TASK_STATE_CANCELED" : state),
  toData: (data) => ({ data }),
  fromData: (data) => (isObject(data) ? data.data : undefined),
  toParams(operation, params) {
    const { historyLength, id, taskId, ...rest } = params;
    switch (operation) {
      case "GetTask":
        return { name: taskName(id), historyLength };
      case "CancelTask":
      case "SubscribeToTask":
        return { name: taskName(id) };
      case "CreateTaskPushNotificationConfig": {
        const config = { name: configName(taskId, id), pushNotificationConfig: toPushConfig({ id, ...rest }) };
        return { parent: taskName(taskId), configId: id, config };
      }
      case "GetTaskPushNotificationConfig":
      case "DeleteTaskPushNotificationConfig":
        return { name: configName(taskId, id) };
      case "ListTaskPushNotificationConfigs":
        return { parent: taskName(taskId) };
      default:
        return params;
    }
  },
  toMember: ({ message, msg, ...rest }) => ({ ...rest, message: message ?? msg }),
  pushConfigsOf: (wire) => fieldsOf(wire).configs,
  // The ids of a push config are in its name.
  fromPushConfig(wire) {
    const { name, pushNotificationConfig } = fieldsOf(wire);
    const [, taskId, , id] = /^tasks\/([^/]+)(\/pushNotificationConfigs\/(.+))?$/.exec(textOf(name) ?? "") ?? [];
    return omitUndefined({ taskId, id, ...fieldsOf(pushNotificationConfig) });
  },
});

function toPushConfig(config: Fields): Fields {
  const { authentication, ...rest } = config;
  if (!isObject(authentication)) return omitUndefined(rest);
  const { credentials, scheme } = authentication;
  return omitUndefined({ ...rest, authentication: omitUndefined({ schemes: [scheme], credentials }) });
}

/** Values of another type than expected stay as they are. */
const mapObject = (value: unknown, map: (value: Fields) => Fields) => (isObject(value) ? map(value) : value);
const mapItems = (value: unknown, map: (value: Fields) => Fields) =>
  Array.isArray(value) ? value.map((item) => mapObject(item, map)) : value;

function createTranslation(form: FormV03): Translation {
  function toMessage({ parts, role, ...rest }: Fields): Fields {
    const encoded = { role: form.toRole(role), [form.parts]: mapItems(parts, toPart) };
    return omitUndefined({ ...form.kindOf("message"), ...rest, ...encoded });
  }

  function toPart(part: Fields): Fields {
    const { data, filename, mediaType, metadata, raw, text, url } = part;
    if (text !== undefined) return omitUndefined({ ...form.kindOf("text"), text, metadata });
    if (data !== undefined) return omitUndefined({ ...form.kindOf("data"), data: form.toData(data), metadata });
    if (raw === undefined && url === undefined) return part;
    const file = omitUndefined({ [form.bytes]: raw, [form.uri]: url, name: filename, mimeType: mediaType });
    return omitUndefined({ ...form.kindOf("file"), file, metadata });
  }

  function toConfiguration({ returnImmediately, taskPushNotificationConfig, ...rest }: Fields): Fields {
    const pushConfig = mapObject(taskPushNotificationConfig, toPushConfig);
    return omitUndefined({ ...rest, blocking: returnImmediately !== true, [form.pushConfig]: pushConfig });
  }

  function fromTask({ artifacts, history, kind: _kind, status, ...rest }: Fields): Fields {
    return omitUndefined({
      ...rest,
      status: mapObject(status, fromStatus),
      artifacts: mapItems(artifacts, fromArtifact),
      history: mapItems(history, fromMessage),
    });
  }

  function fromStatus({ message, state, update, ...rest }: Fields): Fields {
    const decoded = { state: form.fromState(state), message: mapObject(message ?? update, fromMessage) };
    return omitUndefined({ ...decoded, ...rest });
  }

  function fromArtifact({ parts, ...rest }: Fields): Fields {
    return { ...rest, parts: mapItems(parts, fromPart) };
  }

  function fromMessage({ content, kind: _kind, parts, role, ...rest }: Fields): Fields {
    return { ...rest, role: form.fromRole(role), parts: mapItems(content ?? parts, fromPart) };
  }

  function fromPart({ data, file, kind: _kind, ...rest }: Fields): Fields {
    if (data !== undefined) return omitUndefined({ ...rest, data: form.fromData(data) });
    if (!isObject(file)) return rest;
    const { [form.bytes]: raw, [form.uri]: url, mimeType: mediaType, name: filename } = file;
    return omitUndefined({ ...rest, raw, url, filename, mediaType });
  }

  function fromEvent(wire: unknown): Fields {
    const { artifactUpdate, message, statusUpdate, task } = form.toMember(fieldsOf(wire));
    const fromStatusUpdate = ({ final: _final, kind: _kind, status, ...rest }: Fields) => ({
      ...rest,
      status: mapObject(status, fromStatus),
    });
    const fromArtifactUpdate = ({ artifact, kind: _kind, ...rest }: Fields) => ({
      ...rest,
      artifact: mapObject(artifact, fromArtifact),
    });
    return {
      ...(isObject(task) ? { task: fromTask(task) } : {}),
      ...(isObject(message) ? { message: fromMessage(message) } : {}),
      ...(isObject(statusUpdate) ? { statusUpdate: fromStatusUpdate(statusUpdate) } : {}),
      ...(isObject(artifactUpdate) ? { artifactUpdate: fromArtifactUpdate(artifactUpdate) } : {}),
    };
  }

  return {
    encodeRequest(operation, { tenant: _tenant, ...params }) {
      if (operation !== "SendMessage" && operation !== "SendStreamingMessage")
        return omitUndefined(form.toParams(operation, params));
      const message = mapObject(params.message, toMessage);
      const configuration = mapObject(params.configuration, toConfiguration);
      return omitUndefined({ ...params, message, configuration });
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
          return form.fromPushConfig(wire);
        case "ListTaskPushNotificationConfigs":
          return { configs: listOf(form.pushConfigsOf(wire)).map(form.fromPushConfig) };
        default:
          return wire;
      }
    },

    decodeEvent: fromEvent,
  };
}
