/**
 * Uploads a file to the platform: announces it, sends the bytes to the URL in the response, and confirms completion.
 */

import { createHash } from "node:crypto";
import { parseResponse } from "../../../core/dialects/shared/responses.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import { type Fields, fieldsOf, listOf } from "../../../core/model/json.ts";
import { isRawPart, type Part, type RawPart } from "../../../core/model/message.ts";
import type { Log } from "../../../core/model/ports.ts";
import type { Artifact, TaskStatus } from "../../../core/model/task.ts";
import type { Exchanger } from "../../../core/wire/exchange.ts";
import { fileIdOf, withFileId } from "../codec/metadata.ts";
import { BoundedMap } from "./bounded-map.ts";

export interface UploadAccount {
  readonly uid: string;
  readonly apiKey: string;
}

export interface BytesRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

interface UploadRequests {
  readonly ask: Exchanger;
  /** Sends the bytes to a URL that the platform names, so it must be safe for untrusted targets. */
  readonly send: (url: string, request: BytesRequest) => Promise<{ readonly status: number }>;
}

/** A local error. It does not quote the platform's response: upload URLs are secrets. */
export class UploadError extends Error {
  override readonly name = "UploadError";
}

const TIMEOUT_MS = 30_000;

/** Rejects with an UploadError, or the error of the request. */
export function createUploader(account: UploadAccount, baseUrl: string, { ask, send }: UploadRequests): UploadFile {
  const { apiKey, uid } = account;
  const manager = `${baseUrl.replace(/\/+$/, "")}/osms/v1/file/manager`;
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    "x-uid": uid,
    "x-api-key": apiKey,
    "x-request-from": "openclaw",
  };

  async function manage(step: "prepare" | "complete", body: object): Promise<Fields> {
    const call = { method: "POST", url: `${manager}/${step}`, headers, body: JSON.stringify(body) };
    const response = await ask({ ...call, timeoutMs: TIMEOUT_MS });
    const result = fieldsOf(parseResponse(await response.text()));
    // A string in the documentation, a number in some responses.
    if (response.status === 200 && String(result.code) === "0") return result;
    throw new UploadError(`Xiaoyi refused to ${step} an upload with status ${response.status}.`);
  }

  return async (file) => {
    const prepared = await manage("prepare", toPrepareRequest(file, uid));
    const { draftId, objectId } = prepared;
    const { url, ...request } = uploadTargetOf(prepared);
    if (typeof objectId !== "string") throw new UploadError("Xiaoyi prepared an upload without an id.");
    const { status } = await send(url, { ...request, body: new Uint8Array(file.bytes) });
    if (status < 200 || status > 299)
      throw new UploadError(`The bytes of an upload were refused with status ${status}.`);
    await manage("complete", { objectId, draftId });
    return objectId;
  };
}

function toPrepareRequest({ bytes, name }: OutgoingFile, uid: string): object {
  return {
    objectType: "TEMPORARY_MATERIAL_DOC",
    fileName: name,
    fileSha256: createHash("sha256").update(bytes).digest("hex"),
    fileSize: bytes.byteLength,
    fileOwnerInfo: { uid, teamId: uid },
    useEdge: false,
  };
}

/** Any target will do: each accepts all bytes. */
function uploadTargetOf({ uploadInfos }: Fields): { readonly url: string } & Pick<BytesRequest, "headers" | "method"> {
  const { headers, method, url } = fieldsOf(listOf(uploadInfos)[0]);
  if (typeof url !== "string") throw new UploadError("Xiaoyi did not say where the bytes of an upload go.");
  const given = Object.entries(fieldsOf(headers));
  return {
    url,
    method: typeof method === "string" ? method : "PUT",
    headers: Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
  };
}

export interface OutgoingFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export type UploadFile = (file: OutgoingFile) => Promise<string>;

const MAX_REMEMBERED = 1_000;
const DEFAULT_NAME = "file";
const DEFAULT_MEDIA_TYPE = "application/octet-stream";

/** Converts an event into what the platform can show: its files are marked with their ids on the platform. */
export type PrepareEvent = (event: StreamEvent) => Promise<StreamEvent>;

export function createFileUploads(upload: UploadFile, log: Log): PrepareEvent {
  /** Files already uploaded, by their position in the task: an answer that is sent again names the same files. */
  const known = new BoundedMap<string, string>(MAX_REMEMBERED);

  /** A file that cannot be uploaded is represented by its name, as without uploads. */
  async function prepareFile(part: RawPart, place: string): Promise<Part> {
    const { filename: name = DEFAULT_NAME, mediaType = DEFAULT_MEDIA_TYPE, raw } = part;
    const key = `${place} ${part.filename ?? ""} ${raw.length} ${raw.slice(-64)}`;
    try {
      const fileId = known.get(key) ?? (await upload({ name, mediaType, bytes: Buffer.from(raw, "base64") }));
      known.set(key, fileId);
      return withFileId(part, fileId);
    } catch (error) {
      log.warn({ err: error }, "A file could not be uploaded to Xiaoyi.");
      return part;
    }
  }

  /** Returns the holder itself if it has no files. */
  async function prepareParts<T extends { readonly parts: readonly Part[] }>(holder: T, place: string): Promise<T> {
    if (!holder.parts.some(needsUpload)) return holder;
    const parts = holder.parts.map((part) => (needsUpload(part) ? prepareFile(part, place) : part));
    return { ...holder, parts: await Promise.all(parts) };
  }

  async function prepareArtifact(artifact: Artifact, taskId: string): Promise<Artifact> {
    return prepareParts(artifact, `${taskId} ${artifact.artifactId}`);
  }

  async function prepareStatus(status: TaskStatus, taskId: string): Promise<TaskStatus> {
    if (status.message === undefined) return status;
    return { ...status, message: await prepareParts(status.message, `${taskId} ${status.message.messageId}`) };
  }

  return async (event) => {
    if ("artifactUpdate" in event) {
      const { artifactUpdate: update } = event;
      const artifact = await prepareArtifact(update.artifact, update.taskId);
      return artifact === update.artifact ? event : { artifactUpdate: { ...update, artifact } };
    }
    if ("statusUpdate" in event) {
      const { statusUpdate: update } = event;
      return { statusUpdate: { ...update, status: await prepareStatus(update.status, update.taskId) } };
    }
    if ("message" in event) {
      const { contextId = "", messageId } = event.message;
      return { message: await prepareParts(event.message, `${contextId} ${messageId}`) };
    }
    const { task } = event;
    const status = await prepareStatus(task.status, task.id);
    if (task.artifacts === undefined) return { task: { ...task, status } };
    const artifacts: Artifact[] = [];
    for (const artifact of task.artifacts) artifacts.push(await prepareArtifact(artifact, task.id));
    return { task: { ...task, status, artifacts } };
  };
}

function needsUpload(part: Part): part is RawPart {
  return isRawPart(part) && fileIdOf(part) === undefined;
}
