/**
 * Encodes the model as proto messages, in which both codecs omit undefined members. What has no field is added to
 * `losses`, with its path.
 */

import type { StreamEvent } from "../../../model/event.ts";
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
import { toProtoState } from "./schema.ts";

/** `path` locates the message, for reporting losses. */
export function toProtoMessage(message: Message, losses: Loss[], path: string): object {
  const { messageId, contextId, taskId, role, parts, metadata, extensions, referenceTaskIds = [] } = message;
  if (referenceTaskIds.length > 0) losses.push(toLoss(PROTO_LOSSES.referenceTaskIds, `${path}.referenceTaskIds`));
  return { messageId, contextId, taskId, role, content: parts.map(toProtoPart), metadata, extensions };
}

function toProtoArtifact(artifact: Artifact): object {
  return { ...artifact, parts: artifact.parts.map(toProtoPart) };
}

function toProtoStatus({ state, message, timestamp }: TaskStatus, losses: Loss[], path: string): object {
  return {
    state: toProtoState(state),
    message: message === undefined ? undefined : toProtoMessage(message, losses, path),
    timestamp,
  };
}

export function toProtoTask(task: Task, losses: Loss[]): object {
  const { id, contextId, status, artifacts = [], history = [], metadata } = task;
  const messages = history.map((message, index) => toProtoMessage(message, losses, `task.history[${index}]`));
  return {
    id,
    contextId,
    status: toProtoStatus(status, losses, "task.status.message"),
    artifacts: artifacts.length === 0 ? undefined : artifacts.map(toProtoArtifact),
    history: messages.length === 0 ? undefined : messages,
    metadata,
  };
}

export function toProtoOutcome(outcome: SendOutcome, losses: Loss[]): object {
  if ("task" in outcome) return { task: toProtoTask(outcome.task, losses) };
  return { message: toProtoMessage(outcome.message, losses, "message") };
}

/** `closesOnInput`: the stream was opened by a message and ends when the agent requires input. */
export function toProtoEvent(event: StreamEvent, losses: Loss[], closesOnInput: boolean): object {
  if ("artifactUpdate" in event) {
    const { taskId, contextId, artifact, append, lastChunk, metadata } = event.artifactUpdate;
    const update = { taskId, contextId, artifact: toProtoArtifact(artifact), metadata };
    // As in ProtoJSON, default values are omitted.
    return { artifactUpdate: { ...update, append: append || undefined, lastChunk: lastChunk || undefined } };
  }
  if ("statusUpdate" in event) {
    const { taskId, contextId, status, metadata } = event.statusUpdate;
    const encoded = toProtoStatus(status, losses, "statusUpdate.status.message");
    const final = isFinal(status.state, closesOnInput) || undefined;
    return { statusUpdate: { taskId, contextId, status: encoded, final, metadata } };
  }
  return toProtoOutcome(event, losses);
}

/** `final` refers to the stream: no more events follow. The stream stays open while the caller has to log in. */
function isFinal(state: TaskState, closesOnInput: boolean): boolean {
  return isTerminal(state) || (closesOnInput && state === "TASK_STATE_INPUT_REQUIRED");
}

function toProtoPushConfig({ id, url, token, authentication }: TaskPushNotificationConfig): object {
  const { scheme, credentials } = authentication ?? {};
  return { id, url, token, authentication: scheme === undefined ? undefined : { schemes: [scheme], credentials } };
}

export function toProtoTaskPushConfig(config: TaskPushNotificationConfig, taskId: string): object {
  return { name: pushConfigName(taskId, config.id ?? ""), pushNotificationConfig: toProtoPushConfig(config) };
}

export function toProtoPushPage({ configs, nextPageToken }: PushConfigPage, taskId: string): object {
  return {
    configs: configs.map((config) => toProtoTaskPushConfig(config, taskId)),
    nextPageToken: nextPageToken || undefined,
  };
}

/** `blocking` is always sent: agents of 0.3 disagree on its default. */
export function toProtoConfiguration(configuration: SendConfiguration = {}): object {
  const { acceptedOutputModes, taskPushNotificationConfig: push, historyLength, returnImmediately } = configuration;
  return {
    acceptedOutputModes,
    pushNotification: push === undefined ? undefined : toProtoPushConfig(push),
    historyLength,
    blocking: returnImmediately !== true,
  };
}
