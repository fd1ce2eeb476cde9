import type { TaskArtifactUpdate, TaskStatusUpdate } from "../../model/event.ts";
import type { JsonObject, Writable } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import { type Artifact, formatTimestamp, type TaskState } from "../../model/task.ts";
import type { MessageDraft } from "../agent.ts";
import type { EngineContext } from "../options.ts";
import { validateMessage, validateMetadata } from "../runs/validate-output.ts";

/** The task an event is about. */
interface EventTask {
  readonly id: string;
  readonly contextId: string;
}

export function statusEvent(
  context: EngineContext,
  task: EventTask,
  state: TaskState,
  message?: MessageDraft,
  metadata?: JsonObject,
): { readonly statusUpdate: TaskStatusUpdate } {
  const timestamp = formatTimestamp(context.clock.now());
  const statusUpdate: Writable<TaskStatusUpdate> = {
    taskId: task.id,
    contextId: task.contextId,
    status:
      message === undefined
        ? { state, timestamp }
        : { state, message: agentMessage(context, task, message), timestamp },
  };
  if (metadata !== undefined) statusUpdate.metadata = validateMetadata(metadata) as JsonObject;
  return { statusUpdate };
}

export function artifactEvent(
  task: EventTask,
  artifact: Artifact,
  append: boolean,
  lastChunk: boolean,
  metadata?: JsonObject,
): { readonly artifactUpdate: TaskArtifactUpdate } {
  const artifactUpdate: Writable<TaskArtifactUpdate> = { taskId: task.id, contextId: task.contextId, artifact };
  if (append) artifactUpdate.append = append;
  if (lastChunk) artifactUpdate.lastChunk = lastChunk;
  if (metadata !== undefined) artifactUpdate.metadata = validateMetadata(metadata) as JsonObject;
  return { artifactUpdate };
}

export function agentMessage(context: EngineContext, task: EventTask, output: MessageDraft): Message {
  const draft = validateMessage(output);
  return {
    messageId: context.ids.message(),
    contextId: task.contextId,
    taskId: task.id,
    role: "ROLE_AGENT",
    parts: draft.parts,
    ...(draft.metadata === undefined ? undefined : { metadata: draft.metadata }),
    ...(draft.extensions === undefined ? undefined : { extensions: draft.extensions }),
    ...(draft.referenceTaskIds === undefined ? undefined : { referenceTaskIds: draft.referenceTaskIds }),
  };
}

export const textDraft = (text: string): MessageDraft => ({ parts: [{ text }] });
