/** The JSON of 0.1 as the model has it. */
import type { Artifact } from "../../model/artifact.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import type { TaskPushNotificationConfig } from "../../model/push.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { derivedId } from "../shared/derived-id.ts";
import { readPart } from "../shared/early-parts.ts";
import type { Members } from "../shared/early-reading.ts";
import { readRole, readState, readTimestamp } from "../shared/early-states.ts";
import { LOSSES } from "./losses.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Messages of 0.1 have no id. */
export type NameMessage = (message: Omit<Message, "messageId">) => string;

export function readMessage(members: Members, name: NameMessage): Mutable<Message> {
  const role = readRole(members);
  const parts = members.requiredList("parts", readPart);
  const metadata = members.struct("metadata");
  const message: Omit<Mutable<Message>, "messageId"> = { role, parts };
  if (metadata !== undefined) message.metadata = metadata;
  return { messageId: name(message), ...message };
}

export function readPushConfig(members: Members): TaskPushNotificationConfig {
  const config: Mutable<TaskPushNotificationConfig> = { url: members.requiredText("url") };
  const token = members.text("token");
  const authentication = members.object("authentication", readPushAuthentication);
  if (token !== undefined) config.token = token;
  if (authentication !== undefined) config.authentication = authentication;
  return config;
}

function readPushAuthentication(members: Members): TaskPushNotificationConfig["authentication"] {
  const [scheme, ...others] = members.texts("schemes") ?? [];
  const credentials = members.text("credentials");
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    members.reading.lose(LOSSES.pushSchemes);
  }
  if (scheme === undefined) return undefined;
  return credentials === undefined ? { scheme } : { scheme, credentials };
}

/** Where a message stands: 0.1 leaves it to the task around it. */
interface Place {
  readonly taskId: string;
  readonly contextId: string;
}

function readPlaced(members: Members, { contextId, taskId }: Place): Message {
  const message = readMessage(members, (said) => derivedId(taskId, said));
  message.taskId = taskId;
  if (contextId !== "") message.contextId = contextId;
  return message;
}

function readStatus(members: Members, place: Place): TaskStatus {
  const status: Mutable<TaskStatus> = { state: readState(members) };
  const message = members.object("message", (said) => readPlaced(said, place));
  const timestamp = readTimestamp(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

interface HeardArtifact {
  readonly artifact: Mutable<Artifact>;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

function readArtifact(members: Members): HeardArtifact {
  const artifact: Mutable<Artifact> = {
    artifactId: `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  return { artifact, append: members.flag("append") === true, lastChunk: members.flag("lastChunk") === true };
}

/**
 * Some servers keep the chunks they sent as artifacts of the task, and many leave the index at its default for all: a
 * chunk that says so joins the one before it, and everything else is an artifact of its own.
 */
function collected(heard: readonly HeardArtifact[]): Artifact[] {
  const byId = new Map<string, Mutable<Artifact>>();
  for (const { artifact, append } of heard) {
    const { artifactId } = artifact;
    const before = byId.get(artifactId);
    if (before === undefined) {
      byId.set(artifactId, artifact);
    } else if (append) {
      before.parts = [...before.parts, ...artifact.parts];
    } else {
      artifact.artifactId = freeId(artifactId, byId);
      byId.set(artifact.artifactId, artifact);
    }
  }
  return [...byId.values()];
}

function freeId(taken: string, ids: ReadonlyMap<string, unknown>): string {
  for (let number = 2; ; number++) if (!ids.has(`${taken}.${number}`)) return `${taken}.${number}`;
}

export function readTask(members: Members): Task {
  const place = { taskId: members.requiredText("id"), contextId: members.text("sessionId") ?? "" };
  const task: Mutable<Task> = {
    id: place.taskId,
    contextId: place.contextId,
    status: members.requiredObject("status", (status) => readStatus(status, place)),
  };
  const artifacts = members.list("artifacts", readArtifact) ?? [];
  const history = members.list("history", (said) => readPlaced(said, place)) ?? [];
  const metadata = members.struct("metadata");
  if (artifacts.length > 0) task.artifacts = collected(artifacts);
  if (history.length > 0) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

/** Only tasks have these members; a server that answers with one instead of a stream says it all at once. */
const ONLY_IN_TASKS = ["sessionId", "artifacts", "history"];

export function readStreamEvent(members: Members): StreamEvent {
  if (ONLY_IN_TASKS.some((name) => members.raw(name) !== undefined)) return { task: readTask(members) };
  const place = { taskId: members.requiredText("id"), contextId: "" };
  const metadata = members.struct("metadata");
  const more = metadata === undefined ? undefined : { metadata };
  if (members.raw("artifact") === undefined) {
    const status = members.requiredObject("status", (said) => readStatus(said, place));
    return { statusUpdate: { ...place, status, ...more } };
  }
  const { append, artifact, lastChunk } = members.requiredObject("artifact", readArtifact);
  return {
    artifactUpdate: {
      ...place,
      artifact,
      ...(append ? { append } : undefined),
      ...(lastChunk ? { lastChunk } : undefined),
      ...more,
    },
  };
}
