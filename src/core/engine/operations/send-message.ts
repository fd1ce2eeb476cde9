import { taskIdTaken } from "../../model/errors.ts";
import { readDeadline } from "../../model/extensions.ts";
import { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import type { CallContext, FrameStream, SendInput, SendOutcome } from "../../model/operation.ts";
import { isTerminal } from "../../model/task.ts";
import type { DeliveryRegistration, IdempotencyRecord, IdempotencyScope } from "../../store/contract.ts";
import { KeyedMutex, type ServedAgent } from "../concurrency.ts";
import {
  checkCapacity,
  checkIds,
  checkParts,
  claimOf,
  type IncomingSend,
  inputSize,
  toFirstTask,
  toRequestDetails,
  toTurn,
} from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { DuplicateSend, isSameScope, requireSameContent, toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import type { LiveTasks } from "../tasks/live-tasks.ts";
import type { LogReader } from "../tasks/log-readers.ts";
import { closeReaderOnError, LogStream, toMessageStream, toSnapshotFrame } from "../tasks/log-stream.ts";
import { ExistingTasks, type StoredSend } from "./existing-task.ts";
import { type Accepted, FollowUps } from "./follow-ups.ts";
import { Placement } from "./placement.ts";
import type { PushConfigs } from "./push-configs.ts";

/** Everything that happens to a message until an agent has it, and the answer until the caller has it. */
export class SendHandler {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #tasks: LiveTasks;
  readonly #pushConfigs: PushConfigs;
  readonly #existing: ExistingTasks;
  readonly #placement: Placement;
  readonly #followUps: FollowUps;
  /** Sends with the same key at the same time: the second finds what the first has stored. */
  readonly #keys = new KeyedMutex();

  constructor(context: EngineContext, runner: Runner, pushConfigs: PushConfigs) {
    this.#context = context;
    this.#runner = runner;
    this.#tasks = runner.tasks;
    this.#pushConfigs = pushConfigs;
    this.#existing = new ExistingTasks(context, runner);
    this.#placement = new Placement(context, runner);
    this.#followUps = new FollowUps(context, runner, this.#placement);
  }

  async send(served: ServedAgent, input: SendInput, call: CallContext): Promise<SendOutcome> {
    const send = this.#receive(served, input, call, false);
    const accepting = this.#acceptOnce(send);
    const accepted = accepting instanceof Promise ? await accepting : accepting;
    if ("taskId" in accepted) return this.#existing.answer(accepted, send);
    const { live } = accepted;
    if (input.configuration?.returnImmediately === true) {
      // Only an early start leaves the task itself to be waited for; what its run has written since is not.
      if (live.fold.number === 0) await live.whenFlushed();
      return { task: live.toTask(input.configuration?.historyLength) };
    }
    try {
      const message = await live.whenSettled();
      return message === undefined ? { task: live.toTask(input.configuration?.historyLength) } : { message };
    } catch (error) {
      if (live.isHandedOver) return this.#existing.answer({ taskId: live.id }, send);
      throw error;
    }
  }

  async stream(served: ServedAgent, input: SendInput, call: CallContext, onEnd: () => void): Promise<FrameStream> {
    const send = this.#receive(served, input, call, true);
    const accepted = await this.#acceptOnce(send);
    if ("taskId" in accepted) return this.#existing.stream(accepted, send, onEnd);
    const { live, reader } = accepted;
    if (reader === undefined) return this.#streamContinued(live, input, onEnd);
    closeWhenLost(live, reader);
    const message = await closeReaderOnError(this.#decidedSoon(live), reader);
    if (message !== undefined) {
      reader.close();
      return toMessageStream(message, onEnd);
    }
    // Until the task is written the caller can still be refused; later its stream could only break off. Events that the agent
    // yields at once are sent with the task: two small writes cost both sides more than one.
    const written = live.whenFlushed().catch((error: unknown) => {
      if (!live.isHandedOver) throw error;
    });
    await closeReaderOnError(written, reader);
    const { historyLength } = input.configuration ?? {};
    return new LogStream(reader, { historyLength, endOnInputRequired: true, onEnd });
  }

  #receive(served: ServedAgent, input: SendInput, call: CallContext, follow: boolean): IncomingSend {
    const { metadata } = input;
    const deadline = metadata === undefined ? undefined : readDeadline(metadata, this.#context.clock.now());
    return { served, input, call, follow, deadline, deliveries: undefined };
  }

  /** A stream begins with a task: for one that existed before, the task as the message found it. */
  #streamContinued(live: LiveTask, input: SendInput, onEnd: () => void): FrameStream {
    const first = toSnapshotFrame(live.toTask(input.configuration?.historyLength), live.fold.number);
    const reader = this.#runner.readers.open(live.id, live.fold.number, true);
    closeWhenLost(live, reader);
    const { state } = live.fold.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    return new LogStream(reader, { first, ended, endOnInputRequired: true, onEnd });
  }

  /** Takes the message in, or finds the task of an earlier send with the same key. */
  #acceptOnce(send: IncomingSend): Promise<Accepted | StoredSend> | Accepted {
    const { served, input, call } = send;
    if (call.idempotencyKey === undefined) return this.#accept(send);
    const scope = { ...toScope(served, call), key: call.idempotencyKey };
    return this.#keys.runExclusive(JSON.stringify(Object.values(scope)), async () => {
      const known = await this.#context.store.findIdempotencyRecord(scope);
      if (known !== undefined) return toStoredSend(requireSameContent(known, input));
      try {
        return await this.#accept(send);
      } catch (error) {
        const record = error instanceof DuplicateSend ? error.record : await this.#findLater(scope);
        if (record === undefined) throw error;
        return toStoredSend(requireSameContent(record, input));
      }
    });
  }

  /** Another node may have taken in the same message since it was looked for, and the task may even have ended with it. */
  async #findLater(scope: IdempotencyScope): Promise<IdempotencyRecord | undefined> {
    if (!this.#context.lease.isShared) return undefined;
    return this.#context.store.findIdempotencyRecord(scope).catch(() => undefined);
  }

  /** Not a promise where nothing has to be waited for, which is the most frequent case. */
  #accept(send: IncomingSend): Promise<Accepted | StoredSend> | Accepted {
    const { served, input, call } = send;
    checkParts(served.agent.profile, input.message, this.#context.limits);
    checkIds(input, call, this.#context.limits.id);
    send.deliveries = this.#pushConfigs.registrationsOf(input, call);
    const { taskId } = input.message;
    if (input.chosenId !== undefined) return this.#acceptChosen(send, input.chosenId);
    if (taskId === undefined) return this.#submit(send, this.#context.ids.task());
    return this.#continue(send, taskId);
  }

  /** The task of that id if the caller has one, else a new one; an id that is another's is refused. */
  async #acceptChosen(send: IncomingSend, id: string): Promise<Accepted | StoredSend> {
    const stored = this.#tasks.get(id) ?? (await this.#context.store.head(id));
    // A second message may have made the task while the store was asked.
    const known = this.#tasks.get(id) ?? stored;
    if (known === undefined) return this.#submit(send, id);
    if (!isSameScope(known, toScope(send.served, send.call))) {
      throw taskIdTaken(id);
    }
    return this.#continue(send, id);
  }

  #submit(send: IncomingSend, id: string): Promise<Accepted | StoredSend> | Accepted {
    const { served, input, call, follow, deliveries } = send;
    const { limits, times } = this.#context;
    if (this.#runner.runsElsewhere(served)) return this.#placement.submit(send, id);
    const bytes = inputSize(input);
    checkCapacity(served, this.#tasks.ownerLoads, call, bytes, limits);
    const task = toFirstTask(this.#context, input.message, id);
    const { contextId } = task;
    const claim = claimOf(this.#context, send);
    const stays = input.alwaysTask === true || input.replyTo !== undefined;
    const visible = (input.configuration?.returnImmediately === true && !follow) || stays;
    // A webhook is sent the task as late as a stream would show it.
    const notifyAfterMs = deliveries === undefined || visible ? undefined : times.showTaskAfterMs;
    const live = this.#tasks.add(
      served,
      {
        tenant: call.tenant,
        owner: call.caller.owner,
        id,
        contextId,
        dialect: call.dialect,
        fold: new TaskFold(limits.historyPage),
        fence: 1,
        attempt: 1,
        bytes: 0,
        phase: "new",
        visible,
        notifyAfterMs,
      },
      bytes,
    );
    if (deliveries !== undefined && notifyAfterMs !== undefined) this.#revealLater(live, deliveries);
    const reader = follow ? this.#runner.readers.open(id, 0, true) : undefined;
    live.push({ task }, { request: toRequestDetails(send), claim, deliveries });
    live.addTurn(toTurn(task.history[0], send, 1));
    this.#runner.start(live, claim === undefined && this.#mayStartUnwritten(send));
    // A caller that waits for the answer also learns of a loss; only a key must be known to be new before anything else.
    if (claim === undefined) return { live, reader };
    return closeReaderOnError(live.whenFlushed(), reader).then(() => ({ live, reader }));
  }

  /**
   * Whether the run may begin before its task is written, which happens at the end of this turn of the event loop: then
   * one that has ended by that time costs a single commit. No caller sees anything earlier. A crash in between leaves no
   * trace of the run, so that one which must not be repeated does not begin where the write may well be refused.
   */
  #mayStartUnwritten({ served, input }: IncomingSend): boolean {
    if (served.agent.onCrash === "resume" || !this.#context.store.durable) return true;
    return input.chosenId === undefined && !this.#runner.committer.isFailing;
  }

  /** A message for a task that exists, if that has room for the webhook that came with it. */
  #continue(send: IncomingSend, taskId: string): Promise<Accepted | StoredSend> {
    const { served, call, deliveries } = send;
    if (deliveries === undefined) return this.#followUps.accept(send, taskId);
    const add = () => this.#followUps.accept(send, taskId);
    return this.#pushConfigs.addWithinLimit(served, call, taskId, deliveries, add);
  }

  #revealLater(live: LiveTask, deliveries: readonly DeliveryRegistration[]): void {
    const { clock, times } = this.#context;
    clock.after(times.showTaskAfterMs, () => {
      live.reveal();
      this.#runner.committer.notifyDue(deliveries.map(({ route }) => route));
    });
  }

  /** A stream shows the task when the agent gives no sign for a while; a message it returns then completes the task. */
  async #decidedSoon(live: LiveTask): Promise<Message | undefined> {
    const stopTimer = this.#context.clock.after(this.#context.times.showTaskAfterMs, () => live.reveal());
    const message = await live.whenDecided();
    stopTimer();
    if (live.lostError !== undefined && !live.isHandedOver) throw live.lostError;
    return message;
  }
}

/** A stream of a task that was handed over continues for as long as this node lives. */
function closeWhenLost(live: LiveTask, reader: LogReader): void {
  live.onLost(() => {
    if (!live.isHandedOver) reader.close();
  });
}

function toStoredSend(record: StoredSend["record"] & object): StoredSend {
  return { taskId: record.taskId, record };
}
