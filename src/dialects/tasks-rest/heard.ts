/** The JSON of this dialect as the model has it. */
import type { Artifact } from "../../model/artifact.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { derivedId } from "../shared/derived-id.ts";
import { readPart } from "../shared/early-parts.ts";
import type { Members } from "../shared/early-reading.ts";
import { readRole, readState, readTimestamp } from "../shared/early-states.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** For a message that came without an id. */
export type NameMessage = (message: Omit<Message, "messageId">) => string;

export function readMessage(members: Members, name: NameMessage): Message {
  const message: Omit<Mutable<Message>, "messageId"> = {
    role: readRole(members),
    parts: members.requiredList("parts", readPart),
  };
  const contextId = members.text("contextId");
  const taskId = members.text("taskId");
  const metadata = members.struct("metadata");
  if (contextId !== undefined) message.contextId = contextId;
  if (taskId !== undefined) message.taskId = taskId;
  if (metadata !== undefined) message.metadata = metadata;
  return { messageId: members.text("messageId") ?? name(message), ...message };
}

function readStatus(members: Members, name: NameMessage): TaskStatus {
  const status: Mutable<TaskStatus> = { state: readState(members) };
  const message = members.object("message", (said) => readMessage(said, name));
  const timestamp = readTimestamp(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

function readArtifact(members: Members): Artifact {
  const artifact: Mutable<Artifact> = {
    artifactId: members.text("artifactId") ?? `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  return artifact;
}

export function readTask(members: Members): Task {
  const id = members.requiredText("id");
  const name: NameMessage = (said) => derivedId(id, said);
  const task: Mutable<Task> = {
    id,
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", (status) => readStatus(status, name)),
  };
  const artifacts = members.list("artifacts", readArtifact) ?? [];
  const history = members.list("history", (said) => readMessage(said, name)) ?? [];
  const metadata = members.struct("metadata");
  if (artifacts.length > 0) task.artifacts = artifacts;
  if (history.length > 0) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

/** A server that does not stream may answer with the bare task that a send is answered with. */
export function readStreamEvent(members: Members): StreamEvent {
  if (members.raw("artifact") !== undefined) return readArtifactFrame(members);
  if (members.raw("task") === undefined && members.raw("status") !== undefined) return { task: readTask(members) };
  return { task: members.requiredObject("task", readTask) };
}

function readArtifactFrame(members: Members): StreamEvent {
  const taskId = members.requiredText("taskId");
  const contextId = members.text("contextId") ?? "";
  const metadata = members.struct("metadata");
  return members.requiredObject("artifact", (said) => {
    const append = said.flag("append") === true;
    const lastChunk = said.flag("lastChunk") === true;
    return {
      artifactUpdate: {
        taskId,
        contextId,
        artifact: readArtifact(said),
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
        ...(metadata === undefined ? undefined : { metadata }),
      },
    };
  });
}
