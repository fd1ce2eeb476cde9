/** What the platform asks of conversations, as operations on tasks. A session is a context; its tasks are in the store. */
import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { Call, FrameStream, Operation, OutcomeOf } from "../../model/operation.ts";
import { isInterrupted, isTerminal } from "../../model/state.ts";
import type { Task } from "../../model/task.ts";
import type { AgentService } from "../contract.ts";
import { isUsedUp } from "../xiaoyi/continuing.ts";
import type { CancelState, ClearState, ControlWords } from "../xiaoyi/control.ts";
import type { HeardMessage } from "../xiaoyi/decode.ts";

/** Enough to find what runs; a session has one task at a time, now and then two. */
const PAGE = 20;

export class Conversation {
  readonly #service: AgentService;
  readonly #call: Call;

  constructor(service: AgentService, call: Call) {
    this.#service = service;
    this.#call = call;
  }

  /**
   * The answer to a message, or undefined where nobody waits for it. The platform's id is the task's own; where that
   * task has ended, or belongs to someone else, there is a new one of which only the answer bears the platform's id.
   */
  async say(heard: HeardMessage, message: Message): Promise<Answering | undefined> {
    const waiting = await this.#waiting(heard.sessionId);
    if (waiting !== undefined && waiting.id !== heard.taskId) {
      const frames = await this.#dispatch({
        kind: "stream",
        message: { ...message, taskId: waiting.id },
        asTask: true,
      });
      return { frames, continues: true };
    }
    if (!heard.isTurn && waiting === undefined && !(await this.#runs(heard.taskId))) return undefined;
    const send = { kind: "stream", message, asTask: true } as const;
    try {
      return { frames: await this.#dispatch({ ...send, chosenId: heard.taskId }), continues: waiting !== undefined };
    } catch (error) {
      if (!isUsedUp(error, heard.taskId)) throw error;
      return { frames: await this.#dispatch(send), continues: false };
    }
  }

  /** The first of those that may be meant and can be found. */
  async cancel({
    sessionIds,
    taskIds,
  }: ControlWords): Promise<{ readonly id: string | undefined; state: CancelState }> {
    let ended: string | undefined;
    for (const id of taskIds) {
      const state = await this.#cancelTask(id);
      if (state === "canceled") return { id, state };
      if (state === "failed") ended ??= id;
    }
    for (const sessionId of sessionIds) {
      const [newest] = await this.#active(sessionId);
      if (newest !== undefined) return { id: newest.id, state: await this.#cancelTask(newest.id) };
    }
    return { id: ended, state: ended === undefined ? "unknown" : "failed" };
  }

  /** What still runs in the session is for nobody any more. */
  async clear({ sessionIds }: ControlWords): Promise<ClearState> {
    if (sessionIds.length === 0) return "unknown";
    for (const sessionId of sessionIds) {
      const active = await this.#active(sessionId);
      await Promise.all(active.map(({ id }) => this.#cancelTask(id)));
    }
    return "cleared";
  }

  async #cancelTask(id: string): Promise<CancelState> {
    try {
      await this.#dispatch({ kind: "cancel", id });
      return "canceled";
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
      if (error.code === "TASK_NOT_FOUND") return "unknown";
      if (error.code === "TASK_NOT_CANCELABLE") return "failed";
      throw error;
    }
  }

  /** The newest task of the session, if it waits for an answer. */
  async #waiting(sessionId: string): Promise<Task | undefined> {
    const { tasks } = await this.#dispatch({ kind: "list", contextId: sessionId, pageSize: 1, historyLength: 0 });
    return tasks.find(({ status }) => isInterrupted(status.state));
  }

  async #active(sessionId: string): Promise<readonly Task[]> {
    const { tasks } = await this.#dispatch({ kind: "list", contextId: sessionId, pageSize: PAGE, historyLength: 0 });
    return tasks.filter(({ status }) => !isTerminal(status.state));
  }

  async #runs(id: string): Promise<boolean> {
    try {
      const { status } = await this.#dispatch({ kind: "get", id, historyLength: 0 });
      return !isTerminal(status.state);
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return false;
      throw error;
    }
  }

  #dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.#service.dispatch(operation, this.#call);
  }
}

export interface Answering {
  readonly frames: FrameStream;
  /** The task had begun before: what it gave then was shown then. */
  readonly continues: boolean;
}
