/**
 * Decodes validated proto messages to the model, and leniently the responses of peers. What the model cannot express is
 * added to `losses`.
 */

import type { StreamEvent } from "../../../model/event.ts";
import { isObject } from "../../../model/json.ts";
import { type Loss, type Lossy, toLoss } from "../../../model/loss.ts";
import type { Message } from "../../../model/message.ts";
import type {
  OperationKind,
  Outcomes,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPushNotificationConfig,
} from "../../../model/operation.ts";
import type { Artifact, Task, TaskStatus } from "../../../model/task.ts";
import { asResponse, invalidResponse, RESPONSE_LOSSES } from "../../shared/responses.ts";
import { LOSSES, PROTO_LOSSES } from "../losses.ts";
import { fromProtoPart } from "../parts.ts";
import { parsePushConfigName } from "../resource-names.ts";
import { fromProtoCard } from "./card.ts";
import { fromProtoState, type ProtoName, type ProtoTypes, readProto } from "./schema.ts";

export type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

function read<Name extends ProtoName>(name: Name, value: unknown, losses: Loss[]): ProtoTypes[Name] {
  return asResponse(() => readProto(name, value, { lenient: true, losses, code: "INVALID_AGENT_RESPONSE" }));
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown, losses: Loss[]) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value, losses) => fromProtoOutcome(read("SendMessageResponse", value, losses), losses),
  get: (value, losses) => fromProtoTask(read("Task", value, losses), losses),
  cancel: (value, losses) => fromProtoTask(read("Task", value, losses), losses),
  list: () => {
    throw invalidResponse("0.3 has no lists of tasks");
  },
  "push-create": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value, losses), losses),
  "push-get": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value, losses), losses),
  "push-list": (value, losses) =>
    fromProtoPushPage(read("ListTaskPushNotificationConfigResponse", value, losses), losses),
  // The result carries no data; servers send null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value, losses) => fromProtoCard(read("AgentCard", value, losses), losses),
};

export function decodeProtoOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  const losses: Loss[] = [];
  const outcome = READERS[kind](value, losses);
  return { value: outcome, losses };
}

const EVENTS = ["task", "message", "msg", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"];

/** Undefined for an event of a kind that a later version has added. */
export function decodeProtoEvent(value: unknown): Lossy<StreamEvent | undefined> {
  if (isObject(value) && !EVENTS.some((name) => name in value)) {
    return { value: undefined, losses: [toLoss(RESPONSE_LOSSES.unknownEvent, Object.keys(value).join())] };
  }
  const losses: Loss[] = [];
  return { value: fromProtoEvent(read("StreamResponse", value, losses), losses), losses };
}

/** Validation requires a role in requests, so a message without one is part of a response. */
export function fromProtoMessage(message: ProtoTypes["Message"], losses: Loss[]): Message {
  const { messageId, contextId, taskId, role, content, metadata, extensions } = message;
  if (role === undefined) losses.push(toLoss(LOSSES.missing, "message.role"));
  const parts = content.map(fromProtoPart);
  return { messageId, contextId, taskId, role: role ?? "ROLE_AGENT", parts, metadata, extensions };
}

function fromProtoArtifact(artifact: ProtoTypes["Artifact"]): Artifact {
  return { ...artifact, parts: artifact.parts.map(fromProtoPart) };
}

function fromProtoStatus(status: ProtoTypes["TaskStatus"], losses: Loss[]): TaskStatus {
  const message = status.message === undefined ? undefined : fromProtoMessage(status.message, losses);
  return { state: fromProtoState(status.state), message, timestamp: status.timestamp };
}

function fromProtoTask(task: ProtoTypes["Task"], losses: Loss[]): Task {
  const { id, contextId, artifacts, history, metadata } = task;
  return {
    id,
    contextId,
    status: fromProtoStatus(task.status, losses),
    artifacts: artifacts?.map(fromProtoArtifact),
    history: history?.map((message) => fromProtoMessage(message, losses)),
    metadata,
  };
}

/** Validation guarantees one of the two. */
function fromProtoOutcome({ task, message }: ProtoTypes["SendMessageResponse"], losses: Loss[]): SendOutcome {
  if (task !== undefined) return { task: fromProtoTask(task, losses) };
  return { message: fromProtoMessage(message as ProtoTypes["Message"], losses) };
}

export function fromProtoEvent(event: ProtoTypes["StreamResponse"], losses: Loss[]): StreamEvent {
  const { artifactUpdate, statusUpdate } = event;
  if (artifactUpdate !== undefined) {
    return { artifactUpdate: { ...artifactUpdate, artifact: fromProtoArtifact(artifactUpdate.artifact) } };
  }
  if (statusUpdate !== undefined) {
    const { taskId, contextId, metadata } = statusUpdate;
    const status = fromProtoStatus(statusUpdate.status, losses);
    return { statusUpdate: { taskId, contextId, status, metadata } };
  }
  return fromProtoOutcome(event, losses);
}

function fromProtoPushConfig(
  { authentication, ...config }: ProtoTypes["PushNotificationConfig"],
  losses: Loss[],
): TaskPushNotificationConfig {
  const { schemes = [], ...credentials } = authentication ?? {};
  const [scheme, ...others] = schemes;
  if (others.length > 0) losses.push(toLoss(LOSSES.pushSchemes, "config.authentication.schemes"));
  if (scheme !== undefined) return { ...config, authentication: { scheme, ...credentials } };
  if (credentials.credentials !== undefined) {
    losses.push(toLoss(PROTO_LOSSES.credentialsWithoutScheme, "config.authentication.credentials"));
  }
  return config;
}

/** The ids are in the name; an id that the config repeats is assumed to match. */
export function fromProtoTaskPushConfig(
  { name = "", pushNotificationConfig }: ProtoTypes["TaskPushNotificationConfig"],
  losses: Loss[],
): TaskPushNotificationConfig {
  const config = fromProtoPushConfig(pushNotificationConfig, losses);
  const place = parsePushConfigName(name);
  if (place === undefined) return config;
  const { taskId, id } = place;
  return { ...(id !== "" && { id }), ...config, taskId };
}

function fromProtoPushPage(
  { configs, nextPageToken = "" }: ProtoTypes["ListTaskPushNotificationConfigResponse"],
  losses: Loss[],
): PushConfigPage {
  return { configs: configs.map((config) => fromProtoTaskPushConfig(config, losses)), nextPageToken };
}

/**
 * Without a configuration a send blocks. In a configuration, 0.3 libraries omit `blocking: false`, so only `true` means
 * blocking.
 */
export function fromProtoConfiguration(
  { pushNotification, blocking, ...given }: ProtoTypes["SendMessageConfiguration"],
  losses: Loss[],
): SendConfiguration | undefined {
  const configuration: SendConfiguration = {
    ...given,
    ...(pushNotification !== undefined && {
      taskPushNotificationConfig: fromProtoPushConfig(pushNotification, losses),
    }),
    ...(blocking !== true && { returnImmediately: true }),
  };
  return Object.keys(configuration).length === 0 ? undefined : configuration;
}
