import { taskIdTaken } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import { statusText } from "../../model/status-texts.ts";
import { STATE_CLASS } from "../../model/task.ts";
import type { ServedAgent } from "../concurrency.ts";
import { claimOf, type IncomingSend, toFirstTask, toRequestDetails } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { DuplicateSend, toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import type { StoredSend } from "./existing-task.ts";

/** As long as a call waits for an agent that is not connected. */
const CLAIM_MS = 10_000;

/** Tasks that this node takes in for another one to run. */
export class Placement {
  readonly #context: EngineContext;
  readonly #runner: Runner;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
  }

  /** The task is written without a node: one that can run it claims it. */
  async submit(send: IncomingSend, id: string): Promise<StoredSend> {
    const { served, input, call, deliveries } = send;
    const task = toFirstTask(this.#context, input.message, id);
    const claim = claimOf(this.#context, send);
    const result = await this.#runner.committer.write({
      kind: "submit",
      ...toScope(served, call),
      id,
      contextId: task.contextId,
      dialect: call.dialect,
      entries: [LogEntry.of(1, { task }, undefined, toRequestDetails(send))],
      status: task.status,
      turn: 1,
      ...(claim && { idempotency: claim }),
      ...(deliveries && { deliveries }),
    });
    if (!result.ok) throw result.refusal === "duplicate" ? new DuplicateSend(result.record) : taskIdTaken(id);
    this.#context.store.wakeups.publish({ log: [id], work: true });
    this.failIfUnclaimed(served, id, 1);
    return { taskId: id };
  }

  /** No node that could run the task may be there. `number`: where its log stands while it waits. */
  failIfUnclaimed(served: ServedAgent, id: string, number: number): void {
    // A node that ends leaves it to those that follow.
    if (this.#runner.draining || !this.#runner.runsElsewhere(served)) return;
    const { clock, log } = this.#context;
    clock.after(CLAIM_MS, () => {
      if (this.#runner.draining) return;
      this.#fail(served, id, number).catch((error: unknown) => {
        log.warn({ err: error, task: id }, "A task that no node has claimed could not be failed.");
      });
    });
  }

  async #fail(served: ServedAgent, id: string, number: number): Promise<void> {
    const head = await this.#context.store.head(id);
    if (head?.node !== undefined || head?.number !== number || STATE_CLASS[head.status.state] !== "active") return;
    // By now it can run here, where the next look for work finds it.
    if (!this.#runner.runsElsewhere(served)) return;
    await this.#runner.tasks.failStored(head, statusText("peerNotConnected"));
  }
}
