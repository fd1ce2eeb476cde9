/** Encodes the model as JSON of dialects older than 0.2. `JSON.stringify` omits undefined members. */

import type { JsonValue } from "../../../model/json.ts";
import { type Loss, toLoss } from "../../../model/loss.ts";
import { isDataPart, isRawPart, isTextPart, type Message, type Part } from "../../../model/message.ts";
import type { Operation, TaskPushNotificationConfig } from "../../../model/operation.ts";
import { type Artifact, isTerminal, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import type { CallTarget } from "../../contract.ts";
import { ROLE_NAMES, STATE_NAMES } from "../state-names.ts";
import { LEGACY_LOSSES } from "./losses.ts";

/** Differences between the dialects. */
export interface LegacyForm {
  /** Name of the member with a task's context id. */
  readonly context: "sessionId" | "contextId";
  /** Messages and artifacts have ids; both lists of a task are written even if they are empty. */
  readonly hasIds: boolean;
  /** Values that are allowed as the data of a part. */
  readonly acceptsData: (data: JsonValue) => boolean;
}

export function toMessage(message: Message, path: string, losses: Loss[], form: LegacyForm): object {
  const { contextId, extensions, messageId, metadata, parts, referenceTaskIds, role, taskId } = message;
  if (extensions !== undefined) losses.push(toLoss(LEGACY_LOSSES.messageExtensions, `${path}.extensions`));
  if (referenceTaskIds !== undefined) losses.push(toLoss(LEGACY_LOSSES.referenceTaskIds, `${path}.referenceTaskIds`));
  return {
    role: ROLE_NAMES[role],
    parts: toParts(parts, path, losses, form),
    messageId: form.hasIds ? messageId : undefined,
    taskId: form.hasIds ? taskId : undefined,
    contextId: form.hasIds ? contextId : undefined,
    metadata,
  };
}

export function toStatus(
  { message, state, timestamp }: TaskStatus,
  path: string,
  losses: Loss[],
  form: LegacyForm,
): object {
  return {
    state: encodeState(state, path, losses),
    message: message === undefined ? undefined : toMessage(message, `${path}.message`, losses, form),
    timestamp,
  };
}

function encodeState(state: TaskState, path: string, losses: Loss[]): string {
  switch (state) {
    case "TASK_STATE_REJECTED":
      losses.push(toLoss(LEGACY_LOSSES.rejected, `${path}.state`));
      return STATE_NAMES.TASK_STATE_FAILED;
    case "TASK_STATE_AUTH_REQUIRED":
      losses.push(toLoss(LEGACY_LOSSES.authRequired, `${path}.state`));
      return STATE_NAMES.TASK_STATE_INPUT_REQUIRED;
    default:
      return STATE_NAMES[state];
  }
}

/** How a chunk of an artifact relates to earlier chunks. */
interface ChunkMarks {
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}

const NO_MARKS: ChunkMarks = {};

export function toArtifact(
  artifact: Artifact,
  index: number,
  path: string,
  losses: Loss[],
  form: LegacyForm,
  { append, lastChunk }: ChunkMarks = NO_MARKS,
): object {
  const { artifactId, description, extensions, metadata, name } = artifact;
  if (extensions !== undefined) losses.push(toLoss(LEGACY_LOSSES.artifactExtensions, `${path}.extensions`));
  const parts = toParts(artifact.parts, path, losses, form);
  // Two shapes, because most streamed events are chunks, and omitting an undefined member is not free.
  return form.hasIds
    ? { artifactId, name, description, parts, index, append, lastChunk, metadata }
    : { name, description, parts, index, append, lastChunk, metadata };
}

export function toTask(task: Task, losses: Loss[], form: LegacyForm): object {
  const none = form.hasIds ? [] : undefined;
  const { artifacts = none, contextId, history = none, id, metadata, status } = task;
  return {
    id,
    [form.context]: contextId === "" && !form.hasIds ? undefined : contextId,
    status: toStatus(status, "task.status", losses, form),
    artifacts: artifacts?.map((artifact, at) => toArtifact(artifact, at, `task.artifacts[${at}]`, losses, form)),
    history: history?.map((message, at) => toMessage(message, `task.history[${at}]`, losses, form)),
    metadata,
  };
}

/** The completed task that represents a message without a task. */
export function toCompletedTask(
  message: Message,
  { id, contextId }: { readonly id: string; readonly contextId: string | undefined },
  losses: Loss[],
): Task {
  losses.push(toLoss(LEGACY_LOSSES.messageAsTask, "message"));
  return {
    id,
    contextId: message.contextId ?? contextId ?? "",
    status: { state: "TASK_STATE_COMPLETED", message },
  };
}

/** `path` of the message or artifact that contains the parts. */
function toParts(parts: readonly Part[], path: string, losses: Loss[], form: LegacyForm): object[] {
  const encoded: object[] = [];
  for (let index = 0; index < parts.length; index++) {
    encoded.push(toPart(parts[index] as Part, index, path, losses, form));
  }
  return encoded;
}

function toPart(part: Part, index: number, path: string, losses: Loss[], { acceptsData }: LegacyForm): object {
  const { metadata, filename, mediaType } = part;
  if (isTextPart(part)) {
    if (filename !== undefined || mediaType !== undefined) reportLostNames(part, "text/plain", index, path, losses);
    return { type: "text", text: part.text, metadata };
  }
  if (isDataPart(part)) {
    if (filename !== undefined || mediaType !== undefined)
      reportLostNames(part, "application/json", index, path, losses);
    const accepted = acceptsData(part.data);
    if (!accepted) losses.push(toLoss(LEGACY_LOSSES.partData, `${path}.parts[${index}].data`));
    return { type: "data", data: accepted ? part.data : { value: part.data }, metadata };
  }
  const file = isRawPart(part)
    ? { name: filename, mimeType: mediaType, bytes: part.raw }
    : { name: filename, mimeType: mediaType, uri: part.url };
  return { type: "file", file, metadata };
}

/** An implied media type is not a loss. */
function reportLostNames(part: Part, implied: string, index: number, path: string, losses: Loss[]): void {
  const { filename, mediaType } = part;
  if (filename !== undefined) losses.push(toLoss(LEGACY_LOSSES.partFilename, `${path}.parts[${index}].filename`));
  if (mediaType !== undefined && mediaType !== implied) {
    losses.push(toLoss(LEGACY_LOSSES.partMediaType, `${path}.parts[${index}].mediaType`));
  }
}

/** Without the ids of task and config, which are elsewhere. */
export function toPushConfig({ authentication, token, url }: TaskPushNotificationConfig): object {
  const { scheme, credentials } = authentication ?? {};
  return {
    url,
    token: token || undefined,
    authentication: scheme === undefined ? undefined : { schemes: [scheme], credentials },
  };
}

/** Request options that these dialects cannot express. */
export function reportLostRequest(operation: Operation, { extensions, tenant }: CallTarget, losses: Loss[]): void {
  if (tenant !== undefined && tenant !== "") losses.push(toLoss(LEGACY_LOSSES.tenant, "tenant"));
  if (extensions.length > 0) losses.push(toLoss(LEGACY_LOSSES.callExtensions, "extensions"));
  if (operation.kind !== "send" && operation.kind !== "stream") return;
  const { acceptedOutputModes, returnImmediately } = operation.configuration ?? {};
  if (acceptedOutputModes !== undefined) {
    losses.push(toLoss(LEGACY_LOSSES.acceptedOutputModes, "configuration.acceptedOutputModes"));
  }
  if (returnImmediately === true) {
    losses.push(toLoss(LEGACY_LOSSES.returnImmediately, "configuration.returnImmediately"));
  }
}

/** Indexes of a task's artifacts, in the order of their first appearance. That order never changes. */
export class ArtifactIndexes {
  readonly #indexes = new Map<string, number>();

  /** Adds the existing artifacts of a task, in order. */
  seed(artifacts: readonly Artifact[] | undefined): void {
    for (const { artifactId } of artifacts ?? []) this.of(artifactId);
  }

  of(artifactId: string): number {
    let index = this.#indexes.get(artifactId);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(artifactId, index);
    }
    return index;
  }
}

/** Whether the stream of a send ends at this state: terminal, or sent as input-required. */
export function endsSendStream(state: TaskState): boolean {
  return isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
