import type { TaskEvent } from "./event.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Message, Part } from "./message.ts";
import type { Artifact } from "./task.ts";

type MessageContent = Pick<Message, "parts" | "metadata" | "extensions" | "referenceTaskIds">;

/**
 * What things take up beside the strings in them, in memory and in the log, roughly: an event its ids, its time and its
 * entry; an artifact its place among the others. So a limit in bytes also bounds how many small things there can be.
 */
const EVENT_BYTES = 256;
const ARTIFACT_BYTES = 512;
const MESSAGE_BYTES = 256;
const PART_BYTES = 64;
const OBJECT_BYTES = 64;
const VALUE_BYTES = 16;

/** Bytes that a task grows by with an artifact, or with a chunk of one that `continues`. */
export function artifactSize(artifact: Artifact, continues: boolean): number {
  const { artifactId, description = "", extensions, metadata, name = "", parts } = artifact;
  let size = artifactId.length + name.length + description.length + (continues ? EVENT_BYTES : ARTIFACT_BYTES);
  for (const part of parts) size += partSize(part);
  if (metadata !== undefined) size += jsonSize(metadata);
  return extensions === undefined ? size : size + jsonSize(extensions);
}

/** Bytes that a task grows by with a status. */
export function statusSize(message: MessageContent | undefined): number {
  return message === undefined ? EVENT_BYTES : EVENT_BYTES + messageSize(message);
}

export function eventSize(event: TaskEvent): number {
  if ("artifactUpdate" in event) {
    const { append, artifact, metadata } = event.artifactUpdate;
    return artifactSize(artifact, append === true) + metadataSize(metadata);
  }
  if ("statusUpdate" in event)
    return statusSize(event.statusUpdate.status.message) + metadataSize(event.statusUpdate.metadata);
  const { artifacts = [], history = [], metadata, status } = event.task;
  let size = statusSize(status.message) + metadataSize(metadata);
  for (const message of history) size += messageSize(message);
  for (const artifact of artifacts) size += artifactSize(artifact, false);
  return size;
}

export function metadataSize(metadata: JsonObject | undefined): number {
  return metadata === undefined ? 0 : jsonSize(metadata);
}

/** Bytes that a message takes up in memory, roughly. Strings are not looked into, so that it costs next to nothing. */
export function messageSize(message: MessageContent): number {
  const { extensions, metadata, parts, referenceTaskIds } = message;
  let size = MESSAGE_BYTES;
  for (const part of parts) size += partSize(part);
  if (metadata !== undefined) size += jsonSize(metadata);
  if (extensions !== undefined) size += jsonSize(extensions);
  return referenceTaskIds === undefined ? size : size + jsonSize(referenceTaskIds);
}

export function partSize(part: Part): number {
  const { filename = "", mediaType = "", metadata } = part;
  const beside = PART_BYTES + filename.length + mediaType.length + (metadata === undefined ? 0 : jsonSize(metadata));
  if ("text" in part) return beside + part.text.length;
  if ("raw" in part) return beside + part.raw.length;
  return beside + ("url" in part ? part.url.length : jsonSize(part.data));
}

/** Many small values take up far more than their JSON. */
export function jsonSize(value: JsonValue): number {
  if (typeof value === "string") return VALUE_BYTES + value.length;
  if (typeof value !== "object" || value === null) return VALUE_BYTES;
  let size = OBJECT_BYTES;
  if (Array.isArray(value)) for (const item of value) size += jsonSize(item);
  else {
    for (const [key, member] of Object.entries(value)) {
      if (member !== undefined) size += key.length + jsonSize(member);
    }
  }
  return size;
}
