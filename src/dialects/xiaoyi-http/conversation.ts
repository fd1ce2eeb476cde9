/**
 * Maps the platform's conversation requests to operations on tasks. A session is a context; its tasks are in the store.
 */

import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { FrameStream, ReplyTo } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import type { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import type { CancelState, ClearState, ControlTarget } from "../xiaoyi/control.ts";
import type { DecodedMessage } from "../xiaoyi/decode.ts";
import type { PersistentMap } from "../xiaoyi/ports.ts";

/** Enough to find running tasks; a session has one at a time, occasionally two. */
const PAGE = 20;

interface ConversationOptions {
  readonly tasks: AgentTasks;
  /** Contexts of cleared sessions, by session id. */
  readonly cleared: PersistentMap | undefined;
  readonly newContext: () => string;
}

export class Conversation {
  readonly #tasks: AgentTasks;
  readonly #cleared: PersistentMap | undefined;
  readonly #newContext: () => string;

  constructor({ cleared, newContext, tasks }: ConversationOptions) {
    this.#tasks = tasks;
    this.#cleared = cleared;
    this.#newContext = newContext;
  }

  /**
   * The answer to a message, or undefined if no task waits for it. The platform's task id is the task's own id. If that
   * task has ended or has another owner, a new task is created, and only its answer uses the platform's id.
   */
  async send(decoded: DecodedMessage, message: Message, replyTo?: ReplyTo): Promise<OpenedAnswer | undefined> {
    const contextId = await this.#contextOf(decoded.sessionId);
    const waiting = await this.#waiting(contextId);
    if (!decoded.isTurn && waiting === undefined && !(await this.#runs(decoded.taskId))) return undefined;
    const id = waiting?.id ?? decoded.taskId;
    const { hasChosenId, frames } = await this.#tasks.open({ ...message, contextId }, id, replyTo);
    return { frames, continues: waiting !== undefined && hasChosenId };
  }

  /**
   * Cancels the first candidate that exists. If a task is named but unknown, nothing is canceled. The request id is
   * only a guess: it may be the id of a task of the same session.
   */
  async cancel({ sessionIds, taskIds }: ControlTarget, requestId: JsonRpcId): Promise<CancelOutcome> {
    const named = taskIds.filter((id) => id !== requestId);
    const guessed = taskIds.filter((id) => id === requestId);
    const isNamed = named.length > 0;
    let ended: string | undefined;
    const contexts = await Promise.all(sessionIds.map((id) => this.#contextOf(id)));
    for (const id of isNamed ? named : await this.#within(contexts, guessed)) {
      const { state } = await this.#tasks.cancel(id);
      if (state === "canceled") return { id, state };
      if (state === "failed") ended ??= id;
    }
    if (isNamed && ended === undefined) return { id: undefined, state: "unknown" };
    for (const contextId of contexts) {
      const newest = (await this.#newest(contextId)).find(isActive);
      if (newest !== undefined) return { id: newest.id, state: (await this.#tasks.cancel(newest.id)).state };
    }
    return { id: ended, state: ended === undefined ? "unknown" : "failed" };
  }

  /** Cancels the session's running tasks, which have no reader left; later messages start a new context. */
  async clear({ sessionIds }: ControlTarget): Promise<ClearState> {
    if (sessionIds.length === 0) return "unknown";
    for (const sessionId of sessionIds) {
      const tasks = await this.#newest(await this.#contextOf(sessionId));
      await Promise.all(tasks.filter(isActive).map(({ id }) => this.#tasks.cancel(id)));
      if (tasks.length > 0) await this.#cleared?.set(sessionId, this.#newContext());
    }
    return "cleared";
  }

  /** The session id itself, unless the session was cleared. */
  async #contextOf(sessionId: string): Promise<string> {
    return (await this.#cleared?.get(sessionId)) ?? sessionId;
  }

  /** The newest task, if it waits for input. */
  async #waiting(contextId: string): Promise<Task | undefined> {
    const { tasks } = await this.#tasks.dispatch({ kind: "list", contextId, pageSize: 1, historyLength: 0 });
    return tasks.find(({ status }) => isInterrupted(status.state));
  }

  async #newest(contextId: string): Promise<readonly Task[]> {
    const { tasks } = await this.#tasks.dispatch({ kind: "list", contextId, pageSize: PAGE, historyLength: 0 });
    return tasks;
  }

  async #runs(id: string): Promise<boolean> {
    const task = await this.#find(id);
    return task !== undefined && isActive(task);
  }

  /** The tasks that are in one of the contexts; all of them if no context is given. */
  async #within(contexts: readonly string[], taskIds: readonly string[]): Promise<readonly string[]> {
    const found = await Promise.all(taskIds.map((id) => this.#find(id)));
    return found.flatMap((task) =>
      task !== undefined && (contexts.length === 0 || contexts.includes(task.contextId)) ? [task.id] : [],
    );
  }

  async #find(id: string): Promise<Task | undefined> {
    try {
      return await this.#tasks.dispatch({ kind: "get", id, historyLength: 0 });
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }
}

function isActive({ status }: Task): boolean {
  return !isTerminal(status.state);
}

interface CancelOutcome {
  readonly id: string | undefined;
  readonly state: CancelState;
}

export interface OpenedAnswer {
  readonly frames: FrameStream;
  /** The task existed before: its earlier artifacts were already shown. */
  readonly continues: boolean;
}
