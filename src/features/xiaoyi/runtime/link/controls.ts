/** Cancel and clear requests. */

import { toCancelResult, toClearResult } from "../../codec/control.ts";
import type { ControlFrame } from "../../codec/link-frames.ts";
import type { AgentTasks } from "../agent-tasks.ts";
import type { Session, Sessions } from "./sessions.ts";

interface ControlResult {
  readonly result: object;
  readonly taskId?: string;
}

interface ControlContext {
  readonly tasks: AgentTasks;
  readonly sessions: Sessions;
  readonly newContext: () => string;
}

type ControlRequest = Pick<ControlFrame, "id" | "target">;

const ANY_TASK: ControlRequest = { id: null, target: { sessionIds: [], taskIds: [] } };

/** Later messages in the conversation start a new context; running tasks have no reader left. */
export async function clearContext(
  { target }: ControlRequest,
  session: Session | undefined,
  context: ControlContext,
): Promise<ControlResult> {
  const sessionId = session?.id ?? target.sessionIds[0];
  if (sessionId === undefined) return { result: toClearResult("unknown") };
  if (session?.reply !== undefined) void cancelTask(ANY_TASK, session, context);
  await context.sessions.clear(sessionId, context.newContext());
  return { result: toClearResult("cleared") };
}

/** Cancels the named task, wherever the request names it; the running task if none is named. */
export async function cancelTask(
  { id: requestId, target: { taskIds } }: ControlRequest,
  session: Session | undefined,
  { tasks }: ControlContext,
): Promise<ControlResult> {
  const reply = session?.reply?.ended === false ? session.reply : undefined;
  const running = reply?.head.taskId;
  await reply?.started;
  const known = taskIds.find((id) => id === running || session?.tasks.get(id) !== undefined);
  // A request id may be a task id, but most are not.
  const namesNone = taskIds.every((id) => id === requestId);
  const platformId = known ?? (namesNone ? running : undefined);
  if (session === undefined || platformId === undefined) return cancelStored(taskIds, tasks);
  const { state, task } = await tasks.cancel(session.taskOf(platformId));
  // The log of a task that waits for input is not being read.
  if (running === platformId && reply?.following === false && task !== undefined) {
    reply.show({ statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } });
  }
  return { taskId: platformId, result: toCancelResult(platformId, state) };
}

/** Cancels a task of an earlier process, if one of the ids belongs to one. */
async function cancelStored(taskIds: readonly string[], tasks: AgentTasks): Promise<ControlResult> {
  for (const id of taskIds) {
    const { state } = await tasks.cancel(id);
    if (state !== "unknown") return { taskId: id, result: toCancelResult(id, state) };
  }
  return { result: toCancelResult(taskIds[0] ?? "", "unknown") };
}
