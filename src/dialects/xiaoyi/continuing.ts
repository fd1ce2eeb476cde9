/** Tasks that a message continues, and ids that no longer can be continued. */
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";

/** The id that was chosen for a task is that of one that takes no more messages, or not these. */
export function isUsedUp(error: unknown, taskId: string): boolean {
  if (!ProtocolError.is(error)) return false;
  if (error.code === "UNSUPPORTED_OPERATION") return error.metadata?.taskId === taskId;
  const [{ description, field } = NO_VIOLATION] = error.violations ?? [];
  if (error.code !== "INVALID_PARAMS") return false;
  return field === "message.contextId" || (field === "id" && description.includes("another task"));
}

const NO_VIOLATION = { field: "", description: "" };

/** A task that goes on begins its stream with all it ever said. */
export function sinceThen(event: StreamEvent): StreamEvent {
  if (!("task" in event)) return event;
  const { artifacts, ...rest } = event.task;
  return { task: rest };
}
