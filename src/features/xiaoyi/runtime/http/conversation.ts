/**
 * Maps the platform's conversation requests to operations on tasks. A session is a context; its tasks are in the store.
 */

import type { Message } from "../../../../core/model/message.ts";
import type { FrameStream, ReplyTo } from "../../../../core/model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../../../core/model/task.ts";
import type { JsonRpcId } from "../../../../core/wire/json-rpc.ts";
import type { CancelState, ClearState, ControlTarget } from "../../codec/control.ts";
import type { DecodedMessage } from "../../codec/decode-message.ts";
import type { AgentTasks } from "../agent-tasks.ts";
import type { PersistentMap } from "../ports.ts";

/** Enough to find running tasks; a session has one at a time, occasionally two. */
const PAGE = 20;

interface ConversationOptions {
  readonly tasks: AgentTasks;
  /** Contexts of cleared sessions, by session id. */
  readonly cleared: PersistentMap | undefined;
  readonly newContext: () => string;
}

export class Conversation {
  readonly #options: ConversationOptions;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /**
   * The answer to a message, or undefined if no task waits for it. The platform's task id is the task's own id. If that
   * task has ended or has another owner, a new task is created, and only its answer uses the platform's id.
   */
  async send(decoded: DecodedMessage, message: Message, replyTo?: ReplyTo): Promise<OpenedAnswer | undefined> {
    const contextId = await this.#contextOf(decoded.sessionId);
    // The newest task, if it waits for input.
    const waiting = (await this.#newest(contextId, 1)).find(({ status }) => isInterrupted(status.state));
    if (!decoded.isTurn && waiting === undefined) {
      const named = await this.#options.tasks.find(decoded.taskId);
      if (named === undefined || !isActive(named)) return undefined;
    }
    const id = waiting?.id ?? decoded.taskId;
    const { hasChosenId, frames } = await this.#options.tasks.open({ ...message, contextId }, id, replyTo);
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
      const { state } = await this.#options.tasks.cancel(id);
      if (state === "canceled") return { id, state };
      if (state === "failed") ended ??= id;
    }
    if (isNamed && ended === undefined) return { id: undefined, state: "unknown" };
    for (const contextId of contexts) {
      const newest = (await this.#newest(contextId)).find(isActive);
      if (newest !== undefined) return { id: newest.id, state: (await this.#options.tasks.cancel(newest.id)).state };
    }
    return { id: ended, state: ended === undefined ? "unknown" : "failed" };
  }

  /** Cancels the session's running tasks, which have no reader left; later messages start a new context. */
  async clear({ sessionIds }: ControlTarget): Promise<ClearState> {
    if (sessionIds.length === 0) return "unknown";
    for (const sessionId of sessionIds) {
      const tasks = await this.#newest(await this.#contextOf(sessionId));
      await Promise.all(tasks.filter(isActive).map(({ id }) => this.#options.tasks.cancel(id)));
      if (tasks.length > 0) await this.#options.cleared?.set(sessionId, this.#options.newContext());
    }
    return "cleared";
  }

  /** The session id itself, unless the session was cleared. */
  async #contextOf(sessionId: string): Promise<string> {
    return (await this.#options.cleared?.get(sessionId)) ?? sessionId;
  }

  async #newest(contextId: string, pageSize: number = PAGE): Promise<readonly Task[]> {
    const page = { contextId, pageSize, historyLength: 0, firstPageOnly: true };
    return (await this.#options.tasks.dispatch({ kind: "list", ...page })).tasks;
  }

  /** The tasks that are in one of the contexts; all of them if no context is given. */
  async #within(contexts: readonly string[], taskIds: readonly string[]): Promise<readonly string[]> {
    const found = await Promise.all(taskIds.map((id) => this.#options.tasks.find(id)));
    return found.flatMap((task) =>
      task !== undefined && (contexts.length === 0 || contexts.includes(task.contextId)) ? [task.id] : [],
    );
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
