/** What the platform asks of conversations, as operations on tasks. A session is a context; its tasks are in the store. */
import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { FrameStream } from "../../model/operation.ts";
import { isInterrupted, isTerminal } from "../../model/state.ts";
import type { Task } from "../../model/task.ts";
import type { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import type { CancelState, ClearState, ControlWords } from "../xiaoyi/control.ts";
import type { HeardMessage } from "../xiaoyi/decode.ts";

/** Enough to find what runs; a session has one task at a time, now and then two. */
const PAGE = 20;

export class Conversation {
  readonly #tasks: AgentTasks;

  constructor(tasks: AgentTasks) {
    this.#tasks = tasks;
  }

  /**
   * The answer to a message, or undefined where nobody waits for it. The platform's id is the task's own; where that
   * task has ended, or belongs to someone else, there is a new one of which only the answer bears the platform's id.
   */
  async say(heard: HeardMessage, message: Message): Promise<Answering | undefined> {
    const waiting = await this.#waiting(heard.sessionId);
    if (!heard.isTurn && waiting === undefined && !(await this.#runs(heard.taskId))) return undefined;
    const { asWanted, frames } = await this.#tasks.open(message, waiting?.id ?? heard.taskId);
    return { frames, continues: waiting !== undefined && asWanted };
  }

  /** The first of those that may be meant and can be found. */
  async cancel({
    sessionIds,
    taskIds,
  }: ControlWords): Promise<{ readonly id: string | undefined; state: CancelState }> {
    let ended: string | undefined;
    for (const id of taskIds) {
      const { state } = await this.#tasks.cancel(id);
      if (state === "canceled") return { id, state };
      if (state === "failed") ended ??= id;
    }
    for (const sessionId of sessionIds) {
      const [newest] = await this.#active(sessionId);
      if (newest !== undefined) return { id: newest.id, state: (await this.#tasks.cancel(newest.id)).state };
    }
    return { id: ended, state: ended === undefined ? "unknown" : "failed" };
  }

  /** What still runs in the session is for nobody any more. */
  async clear({ sessionIds }: ControlWords): Promise<ClearState> {
    if (sessionIds.length === 0) return "unknown";
    for (const sessionId of sessionIds) {
      const active = await this.#active(sessionId);
      await Promise.all(active.map(({ id }) => this.#tasks.cancel(id)));
    }
    return "cleared";
  }

  /** The newest task of the session, if it waits for an answer. */
  async #waiting(sessionId: string): Promise<Task | undefined> {
    const { tasks } = await this.#tasks.dispatch({ kind: "list", contextId: sessionId, pageSize: 1, historyLength: 0 });
    return tasks.find(({ status }) => isInterrupted(status.state));
  }

  async #active(sessionId: string): Promise<readonly Task[]> {
    const { tasks } = await this.#tasks.dispatch({
      kind: "list",
      contextId: sessionId,
      pageSize: PAGE,
      historyLength: 0,
    });
    return tasks.filter(({ status }) => !isTerminal(status.state));
  }

  async #runs(id: string): Promise<boolean> {
    try {
      const { status } = await this.#tasks.dispatch({ kind: "get", id, historyLength: 0 });
      return !isTerminal(status.state);
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return false;
      throw error;
    }
  }
}

export interface Answering {
  readonly frames: FrameStream;
  /** The task had begun before: what it gave then was shown then. */
  readonly continues: boolean;
}
