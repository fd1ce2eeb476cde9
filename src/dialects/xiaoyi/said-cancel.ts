/** Cancelling a task, in the platform's place. */
import { ProtocolError, taskNotFound } from "../../model/errors.ts";
import type { Task } from "../../model/task.ts";
import { invalidResponse } from "../shared/responses.ts";
import type { MessagePlace } from "./said-message.ts";

/** Some look for the session beside the method, some for the task in the params: both stand wherever they may be looked for. */
export function toCancelWords({ sessionId, taskId }: MessagePlace): object {
  return { id: taskId, method: "tasks/cancel", sessionId, taskId, params: { id: taskId, sessionId } };
}

/** `state` is what the agent says became of the task. */
export function canceledTask({ sessionId, taskId }: MessagePlace, state: unknown): Task {
  switch (state) {
    case "canceled":
    case "cancelled":
      return { id: taskId, contextId: sessionId, status: { state: "TASK_STATE_CANCELED" } };
    case "failed":
      throw new ProtocolError("TASK_NOT_CANCELABLE", "The agent could not cancel the task.", { metadata: { taskId } });
    case "unknown":
      throw taskNotFound(taskId);
    default:
      throw invalidResponse("result.status.state is no state");
  }
}
