/** Decodes the JSON of dialects older than 0.2. */

import type { Writable } from "../../../model/json.ts";
import type { Message, Part, Role } from "../../../model/message.ts";
import type { Artifact, Task, TaskState, TaskStatus } from "../../../model/task.ts";
import type { Members } from "../json-members.ts";
import { deriveId } from "../responses.ts";
import { decodeRole, decodeState, UNKNOWN_STATE } from "../state-names.ts";
import type { LegacyForm } from "./encode.ts";
import { LEGACY_LOSSES } from "./losses.ts";

/** For a message without an id. */
type CreateMessageId = (message: Omit<Message, "messageId">) => string;

export function readMessage(members: Members, form: LegacyForm, createId: CreateMessageId): Writable<Message> {
  const message: Omit<Writable<Message>, "messageId"> = {
    role: readRole(members),
    parts: members.requiredList("parts", readPart),
  };
  const contextId = form.hasIds ? members.text("contextId") : undefined;
  const taskId = form.hasIds ? members.text("taskId") : undefined;
  const messageId = form.hasIds ? members.text("messageId") : undefined;
  const metadata = members.struct("metadata");
  if (contextId !== undefined) message.contextId = contextId;
  if (taskId !== undefined) message.taskId = taskId;
  if (metadata !== undefined) message.metadata = metadata;
  return { messageId: messageId ?? createId(message), ...message };
}

/** The task that contains a status or message. */
interface TaskScope {
  readonly taskId: string;
  readonly contextId: string;
}

/** Default ids of a message are those of its task. */
function readTaskMessage(members: Members, { contextId, taskId }: TaskScope, form: LegacyForm): Message {
  const message = readMessage(members, form, (content) => deriveId(taskId, content));
  if (form.hasIds) return message;
  message.taskId = taskId;
  if (contextId !== "") message.contextId = contextId;
  return message;
}

export function readStatus(members: Members, scope: TaskScope, form: LegacyForm): TaskStatus {
  const status: Writable<TaskStatus> = { state: readState(members) };
  const message = members.object("message", (inner) => readTaskMessage(inner, scope, form));
  const timestamp = readTimestamp(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

interface ReceivedArtifact {
  readonly artifact: Writable<Artifact>;
  readonly append?: true;
  readonly lastChunk?: true;
}

export function readArtifact(members: Members, form: LegacyForm): ReceivedArtifact {
  const artifact: Writable<Artifact> = {
    artifactId: (form.hasIds ? members.text("artifactId") : undefined) ?? `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  return {
    artifact,
    ...(members.flag("append") === true && { append: true }),
    ...(members.flag("lastChunk") === true && { lastChunk: true }),
  };
}

/**
 * Some servers store the chunks that they sent as artifacts of the task, and many leave every index at its default: a
 * chunk marked as such is appended to the previous artifact, anything else is a separate artifact.
 */
function mergeChunks(received: readonly ReceivedArtifact[]): Artifact[] {
  const byId = new Map<string, Writable<Artifact>>();
  for (const { artifact, append } of received) {
    const { artifactId } = artifact;
    const before = byId.get(artifactId);
    if (before === undefined) {
      byId.set(artifactId, artifact);
    } else if (append) {
      before.parts = [...before.parts, ...artifact.parts];
    } else {
      artifact.artifactId = unusedId(artifactId, byId);
      byId.set(artifact.artifactId, artifact);
    }
  }
  return [...byId.values()];
}

function unusedId(taken: string, ids: ReadonlyMap<string, unknown>): string {
  for (let number = 2; ; number++) if (!ids.has(`${taken}.${number}`)) return `${taken}.${number}`;
}

export function readTask(members: Members, form: LegacyForm): Task {
  const scope = { taskId: members.requiredText("id"), contextId: members.text(form.context) ?? "" };
  const task: Writable<Task> = {
    id: scope.taskId,
    contextId: scope.contextId,
    status: members.requiredObject("status", (status) => readStatus(status, scope, form)),
  };
  const artifacts = members.list("artifacts", (artifact) => readArtifact(artifact, form));
  const history = members.list("history", (message) => readTaskMessage(message, scope, form));
  const metadata = members.struct("metadata");
  if (artifacts !== undefined) task.artifacts = mergeChunks(artifacts);
  if (history !== undefined) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

const PART_KINDS = ["text", "file", "data"] as const;

/** `type` decides if it matches the content. Many servers omit it or get it wrong; then the only content decides. */
function kindOfPart(members: Members): (typeof PART_KINDS)[number] | undefined {
  const type = members.raw("type");
  const named = PART_KINDS.find((kind) => kind === type);
  if (named !== undefined && (members.raw(named) !== undefined || (named === "data" && members.has("data")))) {
    return named;
  }
  const present = PART_KINDS.filter((kind) => members.raw(kind) !== undefined);
  return present.length === 1 ? present[0] : undefined;
}

function readPart(members: Members): Part {
  const part = readContent(members);
  const metadata = members.struct("metadata");
  if (metadata !== undefined) part.metadata = metadata;
  return part;
}

function readContent(members: Members): Writable<Part> {
  switch (kindOfPart(members)) {
    case "text":
      return { text: members.anyText("text") ?? "" };
    case "data":
      return { data: members.json("data") };
    case "file":
      return members.requiredObject("file", readFile);
    default:
      members.violate("must have exactly one of text, file, data");
      return { text: "" };
  }
}

function readFile(members: Members): Writable<Part> {
  const raw = members.bytes("bytes");
  const url = members.anyText("uri");
  if ((raw === undefined) === (url === undefined)) members.violate("must have exactly one of bytes, uri");
  const file: Writable<Part> = raw === undefined ? { url: url ?? "" } : { raw };
  const filename = members.text("name");
  const mediaType = members.text("mimeType");
  if (filename !== undefined) file.filename = filename;
  if (mediaType !== undefined) file.mediaType = mediaType;
  return file;
}

function readState(members: Members): TaskState {
  const name = members.raw("state");
  const state = decodeState(name);
  if (state !== undefined) return state;
  if (name === undefined) members.violateMember("state", "is required");
  else members.violateMember("state", name === UNKNOWN_STATE ? "must not be empty" : "is not a task state");
  return "TASK_STATE_SUBMITTED";
}

function readRole(members: Members): Role {
  const name = members.raw("role");
  const role = decodeRole(name);
  if (role === undefined) {
    members.violateMember("role", name === undefined ? "is required" : "must be one of user, agent");
  }
  return role ?? "ROLE_USER";
}

const ISO_8601 = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?$/;

/** UTC with milliseconds. Timestamps without a time zone are UTC: Python's `isoformat` writes them so. */
function readTimestamp(members: Members): string | undefined {
  const value = members.raw("timestamp");
  if (value === undefined) return undefined;
  const match = typeof value === "string" ? ISO_8601.exec(value) : null;
  const [, date, time, fraction = "", zone = "Z"] = match ?? [];
  const instant = match === null ? Number.NaN : Date.parse(`${date}T${time}${fraction}${zone}`);
  if (!Number.isNaN(instant)) return new Date(instant).toISOString();
  members.reading.lose(LEGACY_LOSSES.timestamp, "timestamp");
  return undefined;
}
