/** The operations that a link performs on its agent. */

import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { Operation, OutcomeOf } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task, type TaskState } from "../../model/task.ts";
import { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import type { LinkAgentOptions } from "./options.ts";
import { DIALECT_NAME } from "./version.ts";

/** Number of messages of a task that are searched for the user's last one. */
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

  /** User requests count against the limit, reads on their behalf do not. */
  override dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    if (operation.kind === "stream" || operation.kind === "send" || operation.kind === "cancel") this.#admit();
    return super.dispatch(operation);
  }

  /** Sends another message to a running task; the readers of the task receive its effects. */
  async add(message: Message, id: string): Promise<void> {
    const configuration = { returnImmediately: true };
    await this.dispatch({ kind: "send", message: { ...message, taskId: id }, configuration });
  }

  /** Running tasks, and those that ended since then; from any dialect, some possibly twice. */
  async *unfinished(since: number): AsyncGenerator<Task> {
    yield* this.#all("TASK_STATE_SUBMITTED", undefined);
    yield* this.#all("TASK_STATE_WORKING", undefined);
    for await (const task of this.#all(undefined, since)) {
      if (task.status.state !== "TASK_STATE_INPUT_REQUIRED") yield task;
    }
  }

  /** A task that has ended or waits for its user; undefined for any other. */
  async ended(id: string): Promise<Task | undefined> {
    try {
      const task = await this.dispatch({ kind: "get", id, historyLength: HISTORY_LENGTH });
      return isTerminal(task.status.state) || isInterrupted(task.status.state) ? task : undefined;
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }

  /** Whether a task was created over this dialect. */
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
