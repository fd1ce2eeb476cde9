/** The model as the JSON of 0.1. `JSON.stringify` leaves out members that are undefined. */
import type { Artifact } from "../../model/artifact.ts";
import type { JsonValue } from "../../model/json.ts";
import { type Loss, lossBy } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { TaskPushNotificationConfig } from "../../model/push.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { toEarlyParts } from "../shared/early-parts.ts";
import { toRoleWord, toStateWord } from "../shared/early-states.ts";
import { LOSSES } from "./losses.ts";

function takesData(data: JsonValue): boolean {
  return typeof data === "object" && data !== null;
}

export function toMessage(message: Message, path: string, losses: Loss[]): object {
  const { extensions, metadata, parts, referenceTaskIds, role } = message;
  if (extensions !== undefined) losses.push(lossBy(LOSSES.messageExtensions, `${path}.extensions`));
  if (referenceTaskIds !== undefined) losses.push(lossBy(LOSSES.referenceTaskIds, `${path}.referenceTaskIds`));
  return { role: toRoleWord(role), parts: toEarlyParts(parts, path, losses, takesData), metadata };
}

export function toStatus({ message, state, timestamp }: TaskStatus, path: string, losses: Loss[]): object {
  return {
    state: toStateWord(state, path, losses),
    message: message === undefined ? undefined : toMessage(message, `${path}.message`, losses),
    timestamp,
  };
}

/** How a chunk of an artifact relates to what came before it. */
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
  { append, lastChunk }: ChunkMarks = NO_MARKS,
): object {
  const { description, extensions, metadata, name, parts } = artifact;
  if (extensions !== undefined) losses.push(lossBy(LOSSES.artifactExtensions, `${path}.extensions`));
  return {
    name,
    description,
    parts: toEarlyParts(parts, path, losses, takesData),
    index,
    append,
    lastChunk,
    metadata,
  };
}

export function toTask(task: Task, losses: Loss[]): object {
  const { artifacts, contextId, history, id, metadata, status } = task;
  return {
    id,
    sessionId: contextId === "" ? undefined : contextId,
    status: toStatus(status, "task.status", losses),
    artifacts: artifacts?.map((artifact, index) => toArtifact(artifact, index, `task.artifacts[${index}]`, losses)),
    history: history?.map((message, index) => toMessage(message, `task.history[${index}]`, losses)),
    metadata,
  };
}

/** The completed task that an answer without a task is told as. */
export function taskOfMessage(message: Message, id: string, contextId: string | undefined, losses: Loss[]): Task {
  losses.push(lossBy(LOSSES.messageAsTask, "message"));
  return {
    id,
    contextId: message.contextId ?? contextId ?? "",
    status: { state: "TASK_STATE_COMPLETED", message },
  };
}

export function toPushConfig({ authentication, token, url }: TaskPushNotificationConfig): object {
  return {
    url,
    token,
    authentication:
      authentication === undefined
        ? undefined
        : { schemes: [authentication.scheme], credentials: authentication.credentials },
  };
}
