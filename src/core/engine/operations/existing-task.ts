import { taskNotFound } from "../../model/errors.ts";
import { LogEntry } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import type { CallContext, FrameStream, SendInput, SendOutcome } from "../../model/operation.ts";
import { isTerminal, STATE_CLASS } from "../../model/task.ts";
import type { IdempotencyRecord, Snapshot } from "../../store/contract.ts";
import type { ServedAgent } from "../concurrency.ts";
import type { EngineContext } from "../options.ts";
import { toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import { LogStream, toMessageStream, toSnapshotFrame, waitUntil } from "../tasks/log-stream.ts";
import { statusEvent } from "../tasks/task-events.ts";

/** Enough to get between two writes of a run that never pauses. */
const MAX_SHOW_ATTEMPTS = 50;

/** A send that this node did not take in itself: another node runs its task, or it was made before. */
export interface StoredSend {
  readonly taskId: string;
  /** Set for a send that was made before. */
  readonly record?: IdempotencyRecord;
}

interface SendCall {
  readonly served: ServedAgent;
  readonly input: SendInput;
  readonly call: CallContext;
}

/** Answers a send from the stored task, wherever it runs. */
export class ExistingTasks {
  readonly #context: EngineContext;
  readonly #runner: Runner;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
  }

  async answer({ taskId, record }: StoredSend, send: SendCall): Promise<SendOutcome> {
    if (record?.reply !== undefined) return { message: record.reply };
    const waits = send.input.configuration?.returnImmediately !== true;
    const live = this.#runner.get(taskId);
    if (live !== undefined && live.fold.number > 0) {
      if (!waits && !live.closed) {
        live.decide();
        return { task: live.toTask(send.input.configuration?.historyLength) };
      }
      const message = await live.whenSettled();
      return message === undefined ? { task: live.toTask(send.input.configuration?.historyLength) } : { message };
    }
    if (record !== undefined && !waits) await this.#show(taskId);
    const head = await this.#context.store.head(taskId);
    if (head !== undefined && waits && STATE_CLASS[head.status.state] === "active") {
      await waitUntil(this.#runner.readers.open(taskId, head.number), (state) => STATE_CLASS[state] !== "active");
    }
    const stored = await this.#find(taskId, send.input);
    return stored === undefined ? { message: await this.#storedReply(taskId, send) } : { task: stored.task };
  }

  async stream({ taskId, record }: StoredSend, send: SendCall, onEnd: () => void): Promise<FrameStream> {
    const message = record?.reply ?? (await this.#runner.get(taskId)?.whenDecided());
    if (message !== undefined) return toMessageStream(message, onEnd);
    const isFirst = record !== undefined && send.input.message.taskId === undefined;
    if (isFirst) await this.#show(taskId);
    const stored = await this.#find(taskId, send.input);
    if (stored === undefined) return toMessageStream(await this.#storedReply(taskId, send), onEnd);
    if (isFirst) return new LogStream(this.#runner.readers.open(taskId, 0), { endOnInputRequired: true, onEnd });
    // What came before the message is not its answer: the task as it is now is, and what follows.
    const { task, number } = stored;
    const { state } = task.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    const reader = this.#runner.readers.open(taskId, number);
    return new LogStream(reader, { first: toSnapshotFrame(task, number), ended, endOnInputRequired: true, onEnd });
  }

  /**
   * The node that runs the task may still take it back for a plain message. It gets the time to give a sign; then the
   * log says that the task was shown, and with another event in it the task cannot be taken back any more.
   */
  async #show(taskId: string): Promise<void> {
    if (this.#runner.get(taskId) !== undefined) return;
    const { store } = this.#context;
    const reader = this.#runner.readers.open(taskId, 1);
    await reader.next();
    reader.close();
    for (let attempt = 0; attempt < MAX_SHOW_ATTEMPTS; attempt++) {
      const head = await store.head(taskId);
      if (head === undefined || STATE_CLASS[head.status.state] !== "active") return;
      const event = statusEvent(this.#context, head, head.status.state);
      const { status } = event.statusUpdate;
      const entries = [LogEntry.of(head.number + 1, event)];
      const append = { kind: "append" as const, id: taskId, expect: head.number, entries, status };
      if (!(await this.#runner.committer.writeAtOnce(append)).ok) continue;
      store.wakeups.publish({ log: [taskId] });
      return;
    }
  }

  /** The task vanished since the key was looked up: it was answered by a message, which is kept under the key. */
  async #storedReply(taskId: string, { served, call }: SendCall): Promise<Message> {
    const key = call.idempotencyKey ?? "";
    const record = await this.#context.store.findIdempotencyRecord({ ...toScope(served, call), key });
    if (record?.reply === undefined) throw taskNotFound(taskId);
    return record.reply;
  }

  #find(id: string, input: SendInput): Promise<Snapshot | undefined> {
    const page = this.#context.limits.historyPage;
    const history = Math.min(input.configuration?.historyLength ?? page, page);
    return this.#context.store.snapshot(id, { history, artifacts: true });
  }
}
