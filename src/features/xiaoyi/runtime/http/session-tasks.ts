/**
 * The platform's requests about a session, as operations on tasks. A session is a context; its tasks are in the store.
 */

import type { Message } from "../../../../core/model/message.ts";
import type { FrameStream, ReplyTo } from "../../../../core/model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../../../core/model/task.ts";
import type { JsonRpcId } from "../../../../core/wire/json-rpc.ts";
import type { CancelState, ClearState, ControlTarget } from "../../codec/control.ts";
import type { DecodedMessage } from "../../codec/decode-message.ts";
import type { AgentTasks } from "../agent-tasks.ts";
import type { PersistentMap } from "../ports.ts";

export interface SessionContext {
  readonly tasks: AgentTasks;
  /** Contexts of cleared sessions, by session id. */
  readonly cleared: PersistentMap | undefined;
  readonly newContext: () => string;
}

export interface OpenedStream {
  readonly frames: FrameStream;
  /** The task existed before: its earlier artifacts were already shown. */
  readonly continues: boolean;
}

/**
 * The stream that answers a message, or undefined if no task waits for it. The platform's task id is the task's own id.
 * If that task has ended or has another owner, a new task is created, and only its answer uses the platform's id.
 */
export async function sendMessage(
  context: SessionContext,
  decoded: DecodedMessage,
  message: Message,
  replyTo?: ReplyTo,
): Promise<OpenedStream | undefined> {
  const { tasks } = context;
  const contextId = await contextOf(context, decoded.sessionId);
  // The newest task, if it waits for input.
  const waiting = (await newestTasks(tasks, contextId, 1)).find(({ status }) => isInterrupted(status.state));
  if (!decoded.isTurn && waiting === undefined) {
    const named = await tasks.find(decoded.taskId);
    if (named === undefined || !isActive(named)) return undefined;
  }
  const id = waiting?.id ?? decoded.taskId;
  const { frames, hasChosenId } = await tasks.open({ ...message, contextId }, id, replyTo);
  return { frames, continues: waiting !== undefined && hasChosenId };
}

/**
 * Cancels the first candidate that exists. If a task is named but unknown, nothing is canceled. The request id is only a
 * guess: it may be the id of a task of the same session.
 */
export async function cancelTask(
  context: SessionContext,
  { sessionIds, taskIds }: ControlTarget,
  requestId: JsonRpcId,
): Promise<{ readonly id: string | undefined; readonly state: CancelState }> {
  const { tasks } = context;
  const named = taskIds.filter((id) => id !== requestId);
  const guessed = taskIds.filter((id) => id === requestId);
  const isNamed = named.length > 0;
  let ended: string | undefined;
  const contexts = await Promise.all(sessionIds.map((id) => contextOf(context, id)));
  for (const id of isNamed ? named : await idsWithin(tasks, contexts, guessed)) {
    const { state } = await tasks.cancel(id);
    if (state === "canceled") return { id, state };
    if (state === "failed") ended ??= id;
  }
  if (isNamed && ended === undefined) return { id: undefined, state: "unknown" };
  for (const contextId of contexts) {
    const newest = (await newestTasks(tasks, contextId)).find(isActive);
    if (newest !== undefined) return { id: newest.id, state: (await tasks.cancel(newest.id)).state };
  }
  return { id: ended, state: ended === undefined ? "unknown" : "failed" };
}

/** Cancels the running tasks, which have no reader left; later messages start a new context. */
export async function clearSession(context: SessionContext, { sessionIds }: ControlTarget): Promise<ClearState> {
  const { cleared, newContext, tasks } = context;
  if (sessionIds.length === 0) return "unknown";
  for (const sessionId of sessionIds) {
    const found = await newestTasks(tasks, await contextOf(context, sessionId));
    await Promise.all(found.filter(isActive).map(({ id }) => tasks.cancel(id)));
    if (found.length > 0) await cleared?.set(sessionId, newContext());
  }
  return "cleared";
}

/** The session id itself, unless the session was cleared. */
async function contextOf({ cleared }: SessionContext, sessionId: string): Promise<string> {
  return (await cleared?.get(sessionId)) ?? sessionId;
}

/** Enough to find running tasks; a session has one at a time, occasionally two. */
const PAGE = 20;

async function newestTasks(tasks: AgentTasks, contextId: string, pageSize = PAGE): Promise<readonly Task[]> {
  const page = { contextId, pageSize, historyLength: 0, firstPageOnly: true };
  return (await tasks.dispatch({ kind: "list", ...page })).tasks;
}

/** The tasks that are in one of the contexts; all of them if no context is given. */
async function idsWithin(tasks: AgentTasks, contexts: readonly string[], taskIds: readonly string[]) {
  const found = await Promise.all(taskIds.map((id) => tasks.find(id)));
  return found.flatMap((task) =>
    task !== undefined && (contexts.length === 0 || contexts.includes(task.contextId)) ? [task.id] : [],
  );
}

function isActive({ status }: Task): boolean {
  return !isTerminal(status.state);
}
