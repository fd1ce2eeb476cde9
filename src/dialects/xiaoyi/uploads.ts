/** Files of an answer: phones show those that the platform has. */

import type { StreamEvent } from "../../model/event.ts";
import { isRawPart, type Message, type Part, type RawPart } from "../../model/message.ts";
import type { Log } from "../../model/ports.ts";
import type { Artifact, TaskStatus } from "../../model/task.ts";
import { BoundedMap } from "./bounded-map.ts";
import { fileIdIn, withFileId } from "./marks.ts";

export interface OutgoingFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Gives the platform a file and returns the id it has there. */
export type UploadFile = (file: OutgoingFile) => Promise<string>;

const MOST_REMEMBERED = 1_000;
const DEFAULT_NAME = "file";
const DEFAULT_MEDIA_TYPE = "application/octet-stream";

export class Uploads {
  readonly #upload: UploadFile;
  readonly #log: Log;
  /** What was uploaded before, by where it stands in which task: an answer that is said anew names the same files. */
  readonly #known = new BoundedMap<string, string>(MOST_REMEMBERED);

  constructor(upload: UploadFile, log: Log) {
    this.#upload = upload;
    this.#log = log;
  }

  /** The same event, its files marked with the ids they have on the platform. */
  readonly prepare = async (event: StreamEvent): Promise<StreamEvent> => {
    if ("artifactUpdate" in event) {
      const { artifactUpdate } = event;
      const artifact = await this.#artifact(artifactUpdate.artifact, artifactUpdate.taskId);
      return artifact === artifactUpdate.artifact ? event : { artifactUpdate: { ...artifactUpdate, artifact } };
    }
    if ("statusUpdate" in event) {
      const { statusUpdate } = event;
      const status = await this.#status(statusUpdate.status, statusUpdate.taskId);
      return status === statusUpdate.status ? event : { statusUpdate: { ...statusUpdate, status } };
    }
    if ("message" in event) return { message: await this.#message(event.message, event.message.contextId ?? "") };
    const { task } = event;
    const status = await this.#status(task.status, task.id);
    if (task.artifacts === undefined) return { task: { ...task, status } };
    const artifacts: Artifact[] = [];
    for (const artifact of task.artifacts) artifacts.push(await this.#artifact(artifact, task.id));
    return { task: { ...task, status, artifacts } };
  };

  async #artifact(artifact: Artifact, taskId: string): Promise<Artifact> {
    const parts = await this.#all(artifact.parts, `${taskId} ${artifact.artifactId}`);
    return parts === artifact.parts ? artifact : { ...artifact, parts };
  }

  async #status(status: TaskStatus, taskId: string): Promise<TaskStatus> {
    if (status.message === undefined) return status;
    const message = await this.#message(status.message, taskId);
    return message === status.message ? status : { ...status, message };
  }

  async #message(message: Message, place: string): Promise<Message> {
    const parts = await this.#all(message.parts, `${place} ${message.messageId}`);
    return parts === message.parts ? message : { ...message, parts };
  }

  async #all(parts: readonly Part[], place: string): Promise<readonly Part[]> {
    if (!parts.some(isUpload)) return parts;
    return Promise.all(parts.map((part) => (isUpload(part) ? this.#one(part, place) : part)));
  }

  /** A file that cannot be uploaded is told by its name, as where there are no uploads at all. */
  async #one(part: RawPart, place: string): Promise<Part> {
    const key = `${place} ${part.filename ?? ""} ${part.raw.length} ${part.raw.slice(-64)}`;
    const known = this.#known.get(key);
    if (known !== undefined) return withFileId(part, known);
    try {
      const fileId = await this.#upload({
        name: part.filename ?? DEFAULT_NAME,
        mediaType: part.mediaType ?? DEFAULT_MEDIA_TYPE,
        bytes: Buffer.from(part.raw, "base64"),
      });
      this.#known.set(key, fileId);
      return withFileId(part, fileId);
    } catch (error) {
      this.#log.warn({ err: error }, "A file could not be uploaded to Xiaoyi.");
      return part;
    }
  }
}

function isUpload(part: Part): part is RawPart {
  return isRawPart(part) && fileIdIn(part) === undefined;
}
