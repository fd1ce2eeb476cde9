/** The operations that a link performs on its agent. */

import type { Message } from "../../model/message.ts";
import type { Operation, OutcomeOf, ReplyTo } from "../../model/operation.ts";
import { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import type { LinkAgentOptions } from "./options.ts";
import { DIALECT_NAME } from "./version.ts";

export class LinkTasks extends AgentTasks {
  readonly #admit: () => unknown;

  constructor({ context: { caller, service }, clock, admit = () => {} }: LinkAgentOptions) {
    super(service, { caller, tenant: "", extensions: [], dialect: DIALECT_NAME }, clock);
    this.#admit = admit;
  }

  /** User requests count against the limit, reads on their behalf do not. */
  override dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    if (operation.kind === "stream" || operation.kind === "send" || operation.kind === "cancel") this.#admit();
    return super.dispatch(operation);
  }

  /** Sends another message to a running task; the readers of the task receive its effects. */
  async add(message: Message, id: string, replyTo: ReplyTo): Promise<void> {
    const configuration = { returnImmediately: true };
    await this.dispatch({ kind: "send", message: { ...message, taskId: id }, configuration, replyTo });
  }
}
