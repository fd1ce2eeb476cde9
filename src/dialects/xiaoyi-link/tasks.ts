/** What a link asks of the agent it serves. */

import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { Operation, OutcomeOf } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task, type TaskState } from "../../model/task.ts";
import { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import type { LinkAgentOptions } from "./options.ts";
import { DIALECT_NAME } from "./version.ts";

/** Messages of a task in which the user's last one is looked for. */
const HISTORY_LENGTH = 100;
const PAGE_SIZE = 50;

export class LinkTasks extends AgentTasks {
  readonly #originOf: (id: string) => Promise<string | undefined>;

  readonly #admit: () => unknown;

  constructor({ context: { caller, service }, clock, admit = () => {} }: LinkAgentOptions) {
    super(service, { caller, tenant: "", extensions: [], dialect: DIALECT_NAME }, clock);
    this.#originOf = (id) => service.originOf(id, caller);
    this.#admit = admit;
  }

  /** What users ask for is counted, unlike what is only read to answer them. */
  override dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    if (operation.kind === "stream" || operation.kind === "send" || operation.kind === "cancel") this.#admit();
    return super.dispatch(operation);
  }

  /** Gives a task that is under way another message; what comes of it is told to those who follow the task. */
  async add(message: Message, id: string): Promise<void> {
    const configuration = { returnImmediately: true };
    await this.dispatch({ kind: "send", message: { ...message, taskId: id }, configuration });
  }

  /** Tasks that are under way, and those that ended since; in whichever dialect they were made, some perhaps twice. */
  async *unfinished(since: number): AsyncGenerator<Task> {
    yield* this.#all("TASK_STATE_SUBMITTED", undefined);
    yield* this.#all("TASK_STATE_WORKING", undefined);
    for await (const task of this.#all(undefined, since)) {
      if (task.status.state !== "TASK_STATE_INPUT_REQUIRED") yield task;
    }
  }

  /** A task that is over, or waits for its user; undefined for others, and for none. */
  async ended(id: string): Promise<Task | undefined> {
    try {
      const task = await this.dispatch({ kind: "get", id, historyLength: HISTORY_LENGTH });
      return isTerminal(task.status.state) || isInterrupted(task.status.state) ? task : undefined;
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }

  /** Whether a task was made over this dialect. */
  async isOwn(id: string): Promise<boolean> {
    return (await this.#originOf(id)) === DIALECT_NAME;
  }

  async *#all(status: TaskState | undefined, since: number | undefined): AsyncGenerator<Task> {
    let pageToken = "";
    do {
      const page = await this.dispatch({
        kind: "list",
        pageSize: PAGE_SIZE,
        historyLength: HISTORY_LENGTH,
        ...(status === undefined ? undefined : { status }),
        ...(since === undefined ? undefined : { statusTimestampAfter: since }),
        ...(pageToken === "" ? undefined : { pageToken }),
      });
      yield* page.tasks;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }
}
