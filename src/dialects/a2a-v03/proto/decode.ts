/** Decodes validated proto messages to the model. What the model cannot express is added to `losses`. */

import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import type { Writable } from "../../../model/json.ts";
import { type Loss, type Lossy, NO_LOSSES, toLoss } from "../../../model/loss.ts";
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
import type { ReadOptions } from "../../shared/proto/json-reading.ts";
import { asResponse, invalidResponse } from "../../shared/responses.ts";
import { LOSSES, PROTO_LOSSES } from "../losses.ts";
import { fromProtoPart } from "../parts.ts";
import { parsePushConfigName } from "../resource-names.ts";
import { fromProtoCard } from "./card.ts";
import {
  fromProtoState,
  type ProtoArtifact,
  type ProtoConfiguration,
  type ProtoMessage,
  type ProtoName,
  type ProtoPushConfig,
  type ProtoStreamResponse,
  type ProtoTask,
  type ProtoTaskPushConfig,
  type ProtoTaskStatus,
  type ProtoTypes,
  readProto,
} from "./schema.ts";

/** Decodes responses of a peer in proto messages leniently. */

export type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

function read<Name extends ProtoName>(name: Name, value: unknown): ProtoTypes[Name] {
  return asResponse(() => readProto(name, value, TOLERANT));
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown, losses: Loss[]) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value, losses) => fromProtoOutcome(read("SendMessageResponse", value), losses),
  get: (value, losses) => fromProtoTask(read("Task", value), losses),
  cancel: (value, losses) => fromProtoTask(read("Task", value), losses),
  list: () => {
    throw invalidResponse("0.3 has no lists of tasks");
  },
  "push-create": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value), losses),
  "push-get": (value, losses) => fromProtoTaskPushConfig(read("TaskPushNotificationConfig", value), losses),
  "push-list": (value, losses) => fromProtoPushPage(read("ListTaskPushNotificationConfigResponse", value), losses),
  // The result carries no data; servers send null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value, losses) => fromProtoCard(read("AgentCard", value), losses),
};

export function decodeProtoOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  const losses: Loss[] = [];
  const outcome = READERS[kind](value, losses);
  return { value: outcome, losses };
}

export function decodeProtoEvent(value: unknown): Lossy<StreamEvent> {
  const losses: Loss[] = [];
  const event = fromProtoEvent(read("StreamResponse", value), losses);
  return { value: event, losses: losses.length === 0 ? NO_LOSSES : losses };
}

/** Validation requires a role in requests, so a message without one is part of a response. */
export function fromProtoMessage(message: ProtoMessage, losses: Loss[]): Message {
  const { messageId, contextId, taskId, role, content, metadata, extensions } = message;
  if (role === undefined) losses.push(toLoss(LOSSES.unreadableRole, "message.role"));
  const read: Writable<Message> = { messageId, role: role ?? "ROLE_AGENT", parts: content.map(fromProtoPart) };
  if (contextId !== undefined) read.contextId = contextId;
  if (taskId !== undefined) read.taskId = taskId;
  if (metadata !== undefined) read.metadata = metadata;
  if (extensions !== undefined) read.extensions = extensions;
  return read;
}

function fromProtoArtifact(artifact: ProtoArtifact): Artifact {
  const { artifactId, name, description, parts, metadata, extensions } = artifact;
  const read: Writable<Artifact> = { artifactId, parts: parts.map(fromProtoPart) };
  if (name !== undefined) read.name = name;
  if (description !== undefined) read.description = description;
  if (metadata !== undefined) read.metadata = metadata;
  if (extensions !== undefined) read.extensions = extensions;
  return read;
}

function fromProtoStatus({ state, message, timestamp }: ProtoTaskStatus, losses: Loss[]): TaskStatus {
  const read: Writable<TaskStatus> = { state: fromProtoState(state) };
  if (message !== undefined) read.message = fromProtoMessage(message, losses);
  if (timestamp !== undefined) read.timestamp = timestamp;
  return read;
}

function fromProtoTask(task: ProtoTask, losses: Loss[]): Task {
  const { id, contextId = "", status, artifacts, history, metadata } = task;
  const read: Writable<Task> = { id, contextId, status: fromProtoStatus(status, losses) };
  if (artifacts !== undefined) read.artifacts = artifacts.map(fromProtoArtifact);
  if (history !== undefined) read.history = history.map((message) => fromProtoMessage(message, losses));
  if (metadata !== undefined) read.metadata = metadata;
  return read;
}

/** Validation guarantees one of the two. */
function fromProtoOutcome({ task, message }: ProtoTypes["SendMessageResponse"], losses: Loss[]): SendOutcome {
  if (task !== undefined) return { task: fromProtoTask(task, losses) };
  return { message: fromProtoMessage(message as ProtoMessage, losses) };
}

export function fromProtoEvent(event: ProtoStreamResponse, losses: Loss[]): StreamEvent {
  if (event.artifactUpdate !== undefined) {
    const { taskId, contextId = "", artifact, append, lastChunk, metadata } = event.artifactUpdate;
    const artifactUpdate: Writable<TaskArtifactUpdate> = { taskId, contextId, artifact: fromProtoArtifact(artifact) };
    if (append !== undefined) artifactUpdate.append = append;
    if (lastChunk !== undefined) artifactUpdate.lastChunk = lastChunk;
    if (metadata !== undefined) artifactUpdate.metadata = metadata;
    return { artifactUpdate };
  }
  if (event.statusUpdate !== undefined) {
    const { taskId, contextId = "", status, metadata } = event.statusUpdate;
    const statusUpdate: Writable<TaskStatusUpdate> = { taskId, contextId, status: fromProtoStatus(status, losses) };
    if (metadata !== undefined) statusUpdate.metadata = metadata;
    return { statusUpdate };
  }
  return fromProtoOutcome(event, losses);
}

function fromProtoPushConfig(config: ProtoPushConfig, losses: Loss[]): TaskPushNotificationConfig {
  const { id, url, token, authentication } = config;
  const read: Writable<TaskPushNotificationConfig> = { url };
  if (id !== undefined) read.id = id;
  if (token !== undefined) read.token = token;
  if (authentication === undefined) return read;
  const { schemes = [], credentials } = authentication;
  const [scheme, ...others] = schemes;
  if (others.length > 0) losses.push(toLoss(LOSSES.pushSchemes, "config.authentication.schemes"));
  if (scheme !== undefined) read.authentication = credentials === undefined ? { scheme } : { scheme, credentials };
  else if (credentials !== undefined) {
    losses.push(toLoss(PROTO_LOSSES.credentialsWithoutScheme, "config.authentication.credentials"));
  }
  return read;
}

/** The ids are in the name; an id that the config repeats is assumed to match. */
export function fromProtoTaskPushConfig(config: ProtoTaskPushConfig, losses: Loss[]): TaskPushNotificationConfig {
  const read: Writable<TaskPushNotificationConfig> = fromProtoPushConfig(config.pushNotificationConfig, losses);
  const place = parsePushConfigName(config.name ?? "");
  if (place === undefined) return read;
  read.taskId = place.taskId;
  if (read.id === undefined && place.id !== "") read.id = place.id;
  return read;
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
  { acceptedOutputModes, pushNotification, historyLength, blocking }: ProtoConfiguration,
  losses: Loss[],
): SendConfiguration | undefined {
  const read: Writable<SendConfiguration> = {};
  if (acceptedOutputModes !== undefined) read.acceptedOutputModes = acceptedOutputModes;
  if (pushNotification !== undefined) read.taskPushNotificationConfig = fromProtoPushConfig(pushNotification, losses);
  if (historyLength !== undefined) read.historyLength = historyLength;
  if (blocking !== true) read.returnImmediately = true;
  return Object.keys(read).length === 0 ? undefined : read;
}
