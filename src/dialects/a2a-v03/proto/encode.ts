/** Encodes the model as proto messages. What has no field is added to `losses`, with its path. */

import type { StreamEvent } from "../../../model/event.ts";
import type { Writable } from "../../../model/json.ts";
import { type Loss, toLoss } from "../../../model/loss.ts";
import type { Message } from "../../../model/message.ts";
import type {
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPushNotificationConfig,
} from "../../../model/operation.ts";
import { type Artifact, isTerminal, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import { PROTO_LOSSES } from "../losses.ts";
import { toProtoPart } from "../parts.ts";
import { pushConfigName } from "../resource-names.ts";
import {
  type ProtoArtifact,
  type ProtoArtifactUpdate,
  type ProtoConfiguration,
  type ProtoMessage,
  type ProtoPushConfig,
  type ProtoStatusUpdate,
  type ProtoStreamResponse,
  type ProtoTask,
  type ProtoTaskPushConfig,
  type ProtoTaskStatus,
  type ProtoTypes,
  toProtoState,
} from "./schema.ts";

/** `path` and `index` locate the message, for reporting losses. */
export function toProtoMessage(message: Message, losses: Loss[], path: string, index?: number): ProtoMessage {
  const { messageId, contextId, taskId, role, parts, metadata, extensions, referenceTaskIds } = message;
  if (referenceTaskIds !== undefined && referenceTaskIds.length > 0) {
    const where = index === undefined ? path : `${path}[${index}]`;
    losses.push(toLoss(PROTO_LOSSES.referenceTaskIds, `${where}.referenceTaskIds`));
  }
  const encoded: Writable<ProtoMessage> = { messageId, role, content: parts.map(toProtoPart) };
  if (contextId !== undefined && contextId !== "") encoded.contextId = contextId;
  if (taskId !== undefined && taskId !== "") encoded.taskId = taskId;
  if (metadata !== undefined) encoded.metadata = metadata;
  if (extensions !== undefined && extensions.length > 0) encoded.extensions = extensions;
  return encoded;
}

function toProtoArtifact(artifact: Artifact): ProtoArtifact {
  const { artifactId, name, description, parts, metadata, extensions } = artifact;
  const encoded: Writable<ProtoArtifact> = { artifactId, parts: parts.map(toProtoPart) };
  if (name !== undefined && name !== "") encoded.name = name;
  if (description !== undefined && description !== "") encoded.description = description;
  if (metadata !== undefined) encoded.metadata = metadata;
  if (extensions !== undefined && extensions.length > 0) encoded.extensions = extensions;
  return encoded;
}

function toProtoStatus({ state, message, timestamp }: TaskStatus, losses: Loss[], path: string): ProtoTaskStatus {
  const encoded: Writable<ProtoTaskStatus> = { state: toProtoState(state) };
  if (message !== undefined) encoded.message = toProtoMessage(message, losses, path);
  if (timestamp !== undefined) encoded.timestamp = timestamp;
  return encoded;
}

export function toProtoTask(task: Task, losses: Loss[]): ProtoTask {
  const { id, contextId, status, artifacts, history, metadata } = task;
  const encoded: Writable<ProtoTask> = { id, contextId, status: toProtoStatus(status, losses, "task.status.message") };
  if (artifacts !== undefined && artifacts.length > 0) encoded.artifacts = artifacts.map(toProtoArtifact);
  if (history !== undefined && history.length > 0) {
    encoded.history = history.map((message, index) => toProtoMessage(message, losses, "task.history", index));
  }
  if (metadata !== undefined) encoded.metadata = metadata;
  return encoded;
}

export function toProtoOutcome(outcome: SendOutcome, losses: Loss[]): ProtoTypes["SendMessageResponse"] {
  if ("task" in outcome) return { task: toProtoTask(outcome.task, losses) };
  return { message: toProtoMessage(outcome.message, losses, "message") };
}

/** `closesOnInput`: the stream was opened by a message and ends when the agent requires input. */
export function toProtoEvent(event: StreamEvent, losses: Loss[], closesOnInput: boolean): ProtoStreamResponse {
  if ("artifactUpdate" in event) {
    const { taskId, contextId, artifact, append, lastChunk, metadata } = event.artifactUpdate;
    const artifactUpdate: Writable<ProtoArtifactUpdate> = { taskId, contextId, artifact: toProtoArtifact(artifact) };
    if (append === true) artifactUpdate.append = true;
    if (lastChunk === true) artifactUpdate.lastChunk = true;
    if (metadata !== undefined) artifactUpdate.metadata = metadata;
    return { artifactUpdate };
  }
  if ("statusUpdate" in event) {
    const { taskId, contextId, status, metadata } = event.statusUpdate;
    const encoded = toProtoStatus(status, losses, "statusUpdate.status.message");
    const statusUpdate: Writable<ProtoStatusUpdate> = { taskId, contextId, status: encoded };
    if (isFinal(status.state, closesOnInput)) statusUpdate.final = true;
    if (metadata !== undefined) statusUpdate.metadata = metadata;
    return { statusUpdate };
  }
  return toProtoOutcome(event, losses);
}

/** `final` refers to the stream: no more events follow. The stream stays open while the caller has to log in. */
function isFinal(state: TaskState, closesOnInput: boolean): boolean {
  return isTerminal(state) || (closesOnInput && state === "TASK_STATE_INPUT_REQUIRED");
}

function toProtoPushConfig(config: TaskPushNotificationConfig): ProtoPushConfig {
  const { id, url, token, authentication } = config;
  const encoded: Writable<ProtoPushConfig> = { url };
  if (id !== undefined) encoded.id = id;
  if (token !== undefined) encoded.token = token;
  if (authentication !== undefined) {
    const { scheme, credentials } = authentication;
    encoded.authentication = credentials === undefined ? { schemes: [scheme] } : { schemes: [scheme], credentials };
  }
  return encoded;
}

export function toProtoTaskPushConfig(config: TaskPushNotificationConfig, taskId: string): ProtoTaskPushConfig {
  return {
    name: pushConfigName(taskId, config.id ?? ""),
    pushNotificationConfig: toProtoPushConfig(config),
  };
}

export function toProtoPushPage(
  { configs, nextPageToken }: PushConfigPage,
  taskId: string,
): ProtoTypes["ListTaskPushNotificationConfigResponse"] {
  const encoded = configs.map((config) => toProtoTaskPushConfig(config, taskId));
  return nextPageToken === "" ? { configs: encoded } : { configs: encoded, nextPageToken };
}

/** `blocking` is always sent: agents of 0.3 disagree on its default. */
export function toProtoConfiguration(configuration: SendConfiguration | undefined): ProtoConfiguration {
  const encoded: Writable<ProtoConfiguration> = { blocking: configuration?.returnImmediately !== true };
  if (configuration === undefined) return encoded;
  const { acceptedOutputModes, taskPushNotificationConfig, historyLength } = configuration;
  if (acceptedOutputModes !== undefined && acceptedOutputModes.length > 0) {
    encoded.acceptedOutputModes = acceptedOutputModes;
  }
  if (taskPushNotificationConfig !== undefined)
    encoded.pushNotification = toProtoPushConfig(taskPushNotificationConfig);
  if (historyLength !== undefined) encoded.historyLength = historyLength;
  return encoded;
}
