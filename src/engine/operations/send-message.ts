import { invalidParams, ProtocolError, taskNotFound } from "../../model/errors.ts";
import { TaskFold } from "../../model/fold.ts";
import { type Message, placeInTask } from "../../model/message.ts";
import type { CallContext, FrameStream, SendInput, SendOutcome } from "../../model/operation.ts";
import { formatTimestamp, isTerminal, STATE_CLASS, type Task } from "../../model/task.ts";
import type { IdempotencyClaim, IdempotencyRecord, PushRegistration, Snapshot } from "../../store/contract.ts";
import { KeyedMutex } from "../concurrency.ts";
import {
  checkBytes,
  checkCapacity,
  checkContext,
  checkIds,
  checkParts,
  inputSize,
  taskEndedError,
  toRequestDetails,
  toTurn,
} from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { computeFingerprint, fromHead, isSameScope, requireSameContent, toScope } from "../request-identity.ts";
import { DuplicateSend, type Runner, type ServedAgent } from "../runs/runner.ts";
import { EventFactory } from "../runs/turn-run.ts";
import type { LiveTask } from "../tasks/live-task.ts";
import type { LogReader } from "../tasks/log-readers.ts";
import { LogStream, toMessageStream, toSnapshotFrame, waitUntilSettled } from "../tasks/log-stream.ts";
import type { EventExtras } from "../tasks/task-write.ts";
import type { PushConfigs } from "./push-configs.ts";

/** A message that was taken in. */
interface Accepted {
  readonly live: LiveTask;
  /** Stands before the first event of a new task; a task that existed before is followed from its snapshot. */
  readonly reader: LogReader | undefined;
}

const MAX_OPEN_ATTEMPTS = 5;

/** Everything that happens to a message until an agent has it, and the answer until the caller has it. */
export class SendHandler {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #pushConfigs: PushConfigs;
  /** Parked tasks being taken up: a second message waits for the first. */
  readonly #opening = new Map<string, Promise<unknown>>();
  /** Sends with the same key at the same time: the second finds what the first has stored. */
  readonly #keys = new KeyedMutex();

  constructor(context: EngineContext, runner: Runner, pushConfigs: PushConfigs) {
    this.#context = context;
    this.#runner = runner;
    this.#pushConfigs = pushConfigs;
  }

  async send(served: ServedAgent, input: SendInput, call: CallContext): Promise<SendOutcome> {
    const accepting = this.#acceptOnce(served, input, call, false);
    const accepted = accepting instanceof Promise ? await accepting : accepting;
    if ("fingerprint" in accepted) return this.#answerAgain(accepted, served, input, call);
    const { live } = accepted;
    if (input.configuration?.returnImmediately === true) {
      // Only an early start leaves the task itself to be waited for; what its run says since is not.
      if (live.fold.number === 0) await live.whenFlushed();
      return { task: this.#taskOf(live, input) };
    }
    const message = await live.whenSettled();
    return message === undefined ? { task: this.#taskOf(live, input) } : { message };
  }

  async stream(served: ServedAgent, input: SendInput, call: CallContext, onEnd: () => void): Promise<FrameStream> {
    const accepted = await this.#acceptOnce(served, input, call, true);
    if ("fingerprint" in accepted) return this.#streamAgain(accepted, served, input, call, onEnd);
    const { live, reader } = accepted;
    if (reader === undefined) return this.#streamContinued(live, input, onEnd);
    live.onLost(() => reader.close());
    const message = await closeReaderOnError(this.#decidedSoon(live), reader);
    if (message !== undefined) {
      reader.close();
      return toMessageStream(message, onEnd);
    }
    live.visible = true;
    const { historyLength } = input.configuration ?? {};
    return new LogStream(reader, { historyLength, endOnInputRequired: true, onEnd });
  }

  /** A stream begins with a task: for one that existed before, the task as the message found it. */
  #streamContinued(live: LiveTask, input: SendInput, onEnd: () => void): FrameStream {
    const first = toSnapshotFrame(this.#taskOf(live, input), live.fold.number);
    const reader = this.#runner.readers.open(live.id, live.fold.number, true);
    live.onLost(() => reader.close());
    const { state } = live.fold.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    return new LogStream(reader, { first, ended, endOnInputRequired: true, onEnd });
  }

  /** Takes the message in, or says what an earlier send with the same key came to. */
  #acceptOnce(
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    follow: boolean,
  ): Promise<Accepted | IdempotencyRecord> | Accepted {
    if (call.idempotencyKey === undefined) return this.#accept(served, input, call, follow);
    const scope = { ...toScope(served, call), key: call.idempotencyKey };
    return this.#keys.runExclusive(JSON.stringify(Object.values(scope)), async () => {
      const known = await this.#context.store.findIdempotencyRecord(scope);
      if (known !== undefined) return requireSameContent(known, input);
      try {
        return await this.#accept(served, input, call, follow);
      } catch (error) {
        if (error instanceof DuplicateSend) return requireSameContent(error.record, input);
        throw error;
      }
    });
  }

  /** Not a promise where nothing has to be waited for, which is the most frequent case. */
  #accept(served: ServedAgent, input: SendInput, call: CallContext, follow: boolean): Promise<Accepted> | Accepted {
    checkParts(served.agent.profile, input.message, this.#context.limits);
    checkIds(input, call, this.#context.limits.id);
    const push = this.#pushConfigs.readInline(input, call);
    const { taskId } = input.message;
    if (input.chosenId !== undefined) return this.#acceptChosen(served, input, call, follow, push, input.chosenId);
    if (taskId === undefined) return this.#submit(served, input, call, follow, push, this.#context.ids.task());
    if (push === undefined) return this.#continue(served, input, call, taskId, undefined);
    const add = () => this.#continue(served, input, call, taskId, push);
    return this.#pushConfigs.addWithinLimit(toScope(served, call), taskId, push, add);
  }

  /** The task of that id if the caller has one, else a new one; an id that is another's is refused. */
  async #acceptChosen(
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    follow: boolean,
    push: PushRegistration | undefined,
    id: string,
  ): Promise<Accepted> {
    const stored = this.#runner.get(id) ?? (await this.#context.store.head(id));
    // A second message may have made the task while the store was asked.
    const known = this.#runner.get(id) ?? stored;
    if (known === undefined) return this.#submit(served, input, call, follow, push, id);
    if (!isSameScope(known, toScope(served, call))) throw invalidParams("id", "is the id of another task already");
    const add = () => this.#continue(served, input, call, id, push);
    return push === undefined ? add() : this.#pushConfigs.addWithinLimit(toScope(served, call), id, push, add);
  }

  #submit(
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    follow: boolean,
    push: PushRegistration | undefined,
    id: string,
  ): Promise<Accepted> | Accepted {
    const { ids, clock, limits } = this.#context;
    const bytes = inputSize(input);
    checkCapacity(served, this.#runner.ownerLoads, call, bytes, limits);
    const contextId = input.message.contextId ?? ids.context();
    const message = placeInTask(input.message, id, contextId);
    const idempotency = this.#claimOf(input, call);
    const fold = new TaskFold(limits.historyPage);
    const live = this.#runner.add(
      {
        agent: served.name,
        tenant: call.tenant,
        owner: call.caller.owner,
        id,
        contextId,
        dialect: call.dialect,
        fold,
        fence: 1,
        attempt: 1,
        turn: 1,
        origin: "new",
      },
      "TASK_STATE_SUBMITTED",
    );
    this.#runner.addMessageBytes(live, bytes);
    live.visible = (input.configuration?.returnImmediately === true && !follow) || input.alwaysTask === true;
    const reader = follow ? this.#runner.readers.open(id, 0, true) : undefined;
    const status = { state: "TASK_STATE_SUBMITTED" as const, timestamp: formatTimestamp(clock.now()) };
    const task = { id, contextId, status, history: [message] };
    if (push !== undefined && !live.visible) this.#showLater(live);
    live.push({ task }, { request: toRequestDetails(input, call), claim: idempotency, push });
    live.turns.push(toTurn(message, input, call, 1));
    // A run that may be repeated without harm need not wait for the disk, nor one that no disk will remember. Nobody is
    // told before it is written.
    const repeatable = served.agent.onCrash === "resume" || !this.#context.store.durable;
    const early = repeatable && idempotency === undefined;
    this.#runner.start(live, served, early);
    // Whoever waits for the answer also learns of a loss; only a key must be known to be new before anything else.
    if (idempotency === undefined) return { live, reader };
    return closeReaderOnError(live.whenFlushed(), reader).then(() => ({ live, reader }));
  }

  async #continue(
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    taskId: string,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    for (let attempt = 0; attempt < MAX_OPEN_ATTEMPTS; attempt++) {
      const live = this.#runner.findInScope(taskId, toScope(served, call));
      if (live !== undefined) {
        checkContext(input.message, live.contextId);
        if (live.closed || live.isReleasing) {
          await live.whenGone();
          continue;
        }
        return this.#receive(live, served, input, call, push);
      }
      const opening = this.#opening.get(taskId);
      if (opening !== undefined) {
        await opening.catch(() => undefined);
        continue;
      }
      const opened = this.#open(served, input, call, taskId, push).finally(() => this.#opening.delete(taskId));
      this.#opening.set(taskId, opened);
      return await opened;
    }
    throw new ProtocolError("UNAVAILABLE", "The task is busy; try again.", { metadata: { taskId }, retryAfter: 1 });
  }

  /** A message for a task that is being worked on: it becomes durable at once and waits for its turn. */
  async #receive(
    live: LiveTask,
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    if (isTerminal(live.state)) throw taskEndedError(live.id);
    const bytes = inputSize(input);
    checkBytes(this.#runner.ownerLoads, call, bytes, this.#context.limits);
    this.#runner.addMessageBytes(live, bytes);
    const message = placeInTask(input.message, live.id, live.contextId);
    live.turns.push(toTurn(message, input, call, undefined));
    live.visible = true;
    // The answer has come before the question was even parked, so nothing is required any more.
    const state = live.state === "TASK_STATE_INPUT_REQUIRED" ? "TASK_STATE_WORKING" : live.state;
    live.push(new EventFactory(this.#context, live).status(state), this.#arrival(message, input, call, push));
    await live.whenFlushed();
    const repeat = this.#runner.findDuplicate(message);
    if (repeat !== undefined) throw repeat;
    if (!live.active) this.#runner.start(live, served);
    return { live, reader: undefined };
  }

  /** A message for a task that waits: this process takes it up. */
  async #open(
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    taskId: string,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    const head = await this.#context.store.head(taskId);
    if (head === undefined || !isSameScope(head, toScope(served, call))) throw taskNotFound(taskId);
    checkContext(input.message, head.contextId);
    if (isTerminal(head.status.state)) throw taskEndedError(taskId);
    const { limits } = this.#context;
    const bytes = inputSize(input);
    checkCapacity(served, this.#runner.ownerLoads, call, bytes, limits);
    const fold = await this.#runner.unpark(head);
    try {
      checkBytes(this.#runner.ownerLoads, call, fold.historySize + bytes, limits);
    } catch (error) {
      this.#runner.park(fold);
      throw error;
    }
    const { state } = head.status;
    const live = this.#runner.add({ ...fromHead(head), fold, fence: head.fence, attempt: 1, origin: "parked" }, state);
    this.#runner.addMessageBytes(live, bytes);
    const message = placeInTask(input.message, taskId, head.contextId);
    live.visible = true;
    live.decide();
    live.turns.push(toTurn(message, input, call, undefined));
    live.beginTurn(fold.number + 1);
    const working = new EventFactory(this.#context, live).status("TASK_STATE_WORKING");
    live.push(working, this.#arrival(message, input, call, push));
    this.#runner.start(live, served);
    await live.whenFlushed();
    return { live, reader: undefined };
  }

  async #answerAgain(
    record: IdempotencyRecord,
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
  ): Promise<SendOutcome> {
    if (record.reply !== undefined) return { message: record.reply };
    const live = this.#runner.get(record.taskId);
    if (live !== undefined && live.fold.number > 0) {
      if (input.configuration?.returnImmediately === true && !live.closed) {
        live.visible = true;
        return { task: this.#taskOf(live, input) };
      }
      const message = await live.whenSettled();
      return message === undefined ? { task: this.#taskOf(live, input) } : { message };
    }
    const head = await this.#context.store.head(record.taskId);
    if (head === undefined) return { message: await this.#keptReply(served, call, record.taskId) };
    if (STATE_CLASS[head.status.state] === "active" && input.configuration?.returnImmediately !== true) {
      await waitUntilSettled(this.#runner.readers.open(record.taskId, head.number));
    }
    return { task: (await this.#stored(record.taskId, this.#historyLength(input))).task };
  }

  async #streamAgain(
    record: IdempotencyRecord,
    served: ServedAgent,
    input: SendInput,
    call: CallContext,
    onEnd: () => void,
  ): Promise<FrameStream> {
    const message = record.reply ?? (await this.#runner.get(record.taskId)?.whenDecided());
    if (message !== undefined) return toMessageStream(message, onEnd);
    const head = await this.#context.store.head(record.taskId);
    if (head === undefined) return toMessageStream(await this.#keptReply(served, call, record.taskId), onEnd);
    if (input.message.taskId === undefined) {
      return new LogStream(this.#runner.readers.open(record.taskId, 0), { endOnInputRequired: true, onEnd });
    }
    // What came before the repeated message is not its answer: the task as it is now is, and what follows.
    const { task, number } = await this.#stored(record.taskId, this.#historyLength(input));
    const { state } = task.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    const reader = this.#runner.readers.open(record.taskId, number);
    return new LogStream(reader, { first: toSnapshotFrame(task, number), ended, endOnInputRequired: true, onEnd });
  }

  /** The task vanished since the key was looked up: it was answered by a message, which is kept under the key. */
  async #keptReply(served: ServedAgent, call: CallContext, taskId: string): Promise<Message> {
    const key = call.idempotencyKey ?? "";
    const record = await this.#context.store.findIdempotencyRecord({ ...toScope(served, call), key });
    if (record?.reply === undefined) throw taskNotFound(taskId);
    return record.reply;
  }

  async #stored(id: string, history: number): Promise<Snapshot> {
    const snapshot = await this.#context.store.snapshot(id, { history, artifacts: true });
    if (snapshot === undefined) throw taskNotFound(id);
    return snapshot;
  }

  /** A webhook is told of the task as late as a stream would show it. */
  #showLater(live: LiveTask): void {
    const { clock, times } = this.#context;
    live.notifyAfter = clock.now() + times.showTaskAfterMs;
    clock.after(times.showTaskAfterMs, () => {
      makeVisible(live);
      this.#runner.committer.onPushDue();
    });
  }

  /** A stream shows the task when the agent gives no sign for a while; a message it returns then completes the task. */
  async #decidedSoon(live: LiveTask): Promise<Message | undefined> {
    const stopTimer = this.#context.clock.after(this.#context.times.showTaskAfterMs, () => makeVisible(live));
    const message = await live.whenDecided();
    stopTimer();
    if (live.lostError !== undefined) throw live.lostError;
    return message;
  }

  #taskOf(live: LiveTask, input: SendInput): Task {
    return live.fold.toTask({ historyLength: this.#historyLength(input) });
  }

  #historyLength(input: SendInput): number {
    const page = this.#context.limits.historyPage;
    return Math.min(input.configuration?.historyLength ?? page, page);
  }

  #arrival(received: Message, input: SendInput, call: CallContext, push: PushRegistration | undefined): EventExtras {
    return { received, request: toRequestDetails(input, call), claim: this.#claimOf(input, call), push };
  }

  #claimOf(input: SendInput, call: CallContext): IdempotencyClaim | undefined {
    if (call.idempotencyKey === undefined) return undefined;
    const expiresAt = this.#context.clock.now() + this.#context.times.idempotencyMs;
    return { key: call.idempotencyKey, fingerprint: computeFingerprint(input), expiresAt };
  }
}

function makeVisible(live: LiveTask): void {
  // Closed before anything was decided: the task is just being taken back for a message.
  if (live.closed) return;
  live.visible = true;
  live.onVisible?.();
  live.decide();
}

async function closeReaderOnError<T>(promise: Promise<T>, reader: LogReader | undefined): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    reader?.close();
    throw error;
  }
}
