import type { TaskArtifactUpdate, TaskStatusUpdate } from "../../model/event.ts";
import type { JsonObject } from "../../model/json.ts";
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
  return {
    statusUpdate: {
      taskId: task.id,
      contextId: task.contextId,
      status:
        message === undefined
          ? { state, timestamp }
          : { state, message: agentMessage(context, task, message), timestamp },
      ...(metadata === undefined ? undefined : { metadata: validateMetadata(metadata) as JsonObject }),
    },
  };
}

export function artifactEvent(
  task: EventTask,
  artifact: Artifact,
  append: boolean,
  lastChunk: boolean,
  metadata?: JsonObject,
): { readonly artifactUpdate: TaskArtifactUpdate } {
  return {
    artifactUpdate: {
      taskId: task.id,
      contextId: task.contextId,
      artifact,
      ...(append ? { append } : undefined),
      ...(lastChunk ? { lastChunk } : undefined),
      ...(metadata === undefined ? undefined : { metadata: validateMetadata(metadata) as JsonObject }),
    },
  };
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
