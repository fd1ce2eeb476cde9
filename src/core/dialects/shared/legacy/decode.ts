/** Decodes the JSON of dialects older than 0.2, and what it has in common with that of 0.3. */

import { omitUndefined, type Writable } from "../../../model/json.ts";
import type { LossRule } from "../../../model/loss.ts";
import type { Message, Part, Role } from "../../../model/message.ts";
import type { AuthenticationInfo, TaskPushNotificationConfig } from "../../../model/operation.ts";
import { type Artifact, TASK_STATES, type Task, type TaskState, type TaskStatus } from "../../../model/task.ts";
import type { Members } from "../json-members.ts";
import { deriveId } from "../responses.ts";
import { decodeRole, decodeState, STATE_NAMES } from "../state-names.ts";
import type { LegacyForm } from "./encode.ts";
import { LEGACY_LOSSES } from "./losses.ts";

/** For a message without an id. */
type CreateMessageId = (message: Omit<Message, "messageId">) => string;

export function readMessage(members: Members, form: LegacyForm, createId: CreateMessageId): Writable<Message> {
  const text = (name: string) => (form.hasIds ? members.text(name) : undefined);
  const message = {
    role: readRole(members),
    parts: members.requiredList("parts", readPart),
    contextId: text("contextId"),
    taskId: text("taskId"),
    metadata: members.struct("metadata"),
  };
  return { messageId: text("messageId") ?? createId(message), ...message };
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
  return {
    state: readState(members),
    message: members.object("message", (inner) => readTaskMessage(inner, scope, form)),
    timestamp: readTimestamp(members, LEGACY_LOSSES.timestamp),
  };
}

interface ReceivedArtifact {
  readonly artifact: Writable<Artifact>;
  readonly append?: true;
  readonly lastChunk?: true;
}

export function readArtifact(members: Members, form: LegacyForm): ReceivedArtifact {
  const artifact = {
    artifactId: (form.hasIds ? members.text("artifactId") : undefined) ?? `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
    name: members.text("name"),
    description: members.text("description"),
    metadata: members.struct("metadata"),
  };
  return {
    artifact,
    append: members.flag("append") === true || undefined,
    lastChunk: members.flag("lastChunk") === true || undefined,
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
  const status = members.requiredObject("status", (inner) => readStatus(inner, scope, form));
  const artifacts = members.list("artifacts", (inner) => readArtifact(inner, form));
  return {
    id: scope.taskId,
    contextId: scope.contextId,
    status,
    artifacts: artifacts && mergeChunks(artifacts),
    history: members.list("history", (inner) => readTaskMessage(inner, scope, form)),
    metadata: members.struct("metadata"),
  };
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
  return metadata === undefined ? part : { ...part, metadata };
}

function readContent(members: Members): Part {
  switch (kindOfPart(members)) {
    case "text":
      return { text: members.anyText("text") ?? "" };
    case "data":
      return { data: members.json("data") };
    case "file":
      return members.requiredObject("file", readFile);
    default:
      if (!members.reading.fills()) members.violate("must have exactly one of text, file, data");
      return { text: "" };
  }
}

export function readFile(members: Members): Part {
  const raw = members.bytes("bytes");
  const url = members.anyText("uri");
  if ((raw === undefined) === (url === undefined) && !members.reading.fills()) {
    members.violate("must have exactly one of bytes, uri");
  }
  const filename = members.text("name");
  const mediaType = members.text("mimeType");
  return omitUndefined(raw === undefined ? { url: url ?? "", filename, mediaType } : { raw, filename, mediaType });
}

const KNOWN_STATES = TASK_STATES.map((state) => STATE_NAMES[state]).join(", ");

export function readState(members: Members): TaskState {
  const state = readName(members, "state", decodeState, KNOWN_STATES);
  return state ?? "TASK_STATE_UNSPECIFIED";
}

export function readRole(members: Members): Role {
  return readName(members, "role", decodeRole, "user, agent") ?? "ROLE_AGENT";
}

/** Undefined if a peer sent none, or one that is not known here. */
function readName<T>(members: Members, name: string, decode: (name: unknown) => T | undefined, known: string) {
  const given = members.raw(name);
  const read = decode(given);
  if (read !== undefined) return read;
  const { reading } = members;
  if (given === undefined ? reading.fills(name) : reading.replaces(given, name)) return undefined;
  members.violateMember(name, given === undefined ? "is required" : `must be one of ${known}`);
  return undefined;
}

const ISO_8601 = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9}))?([Zz]|[+-]\d\d:?\d\d)?$/;

/** UTC with milliseconds. Timestamps without a time zone are UTC: Python's `isoformat` writes them so. */
export function readTimestamp(members: Members, loss: LossRule): string | undefined {
  const value = members.raw("timestamp");
  if (value === undefined) return undefined;
  const match = typeof value === "string" ? ISO_8601.exec(value) : null;
  const [, date, time, fraction = "0", zone = "Z"] = match ?? [];
  const instant =
    match === null
      ? Number.NaN
      : Date.parse(`${date}T${time}${time?.length === 8 ? `.${fraction}` : ""}${zone.toUpperCase()}`);
  if (!Number.isNaN(instant)) return new Date(instant).toISOString();
  members.reading.lose(loss, "timestamp");
  return undefined;
}

/** Without the task id, which is a sibling of the config. `loss`: schemes other than the first. */
export function readPushConfig(members: Members, loss: LossRule): TaskPushNotificationConfig {
  return omitUndefined({
    id: members.text("id"),
    url: members.requiredText("url"),
    token: members.text("token"),
    authentication: members.object("authentication", (inner) => readAuthentication(inner, loss)),
  });
}

function readAuthentication(members: Members, loss: LossRule): AuthenticationInfo | undefined {
  const [scheme, ...others] = members.texts("schemes") ?? [];
  const credentials = members.text("credentials");
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    members.reading.lose(loss, scheme === undefined ? "credentials" : "schemes");
  }
  return scheme === undefined ? undefined : { scheme, credentials };
}
