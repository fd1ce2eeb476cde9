import { invalidParams, ProtocolError, taskNotFound } from "../model/errors.ts";
import { TaskFold } from "../model/fold.ts";
import { inTask, type Message } from "../model/message.ts";
import type { Call, FrameStream, SendInput, SendOutcome } from "../model/operation.ts";
import { isTerminal, STATE_CLASS } from "../model/state.ts";
import type { Task } from "../model/task.ts";
import type { IdempotencyClaim, IdempotencyRecord, PushRegistration, Snapshot } from "../store/contract.ts";
import { bytesOf, checkBytes, checkContext, checkIds, checkRoom, ended, noteOf, toTurn } from "./arriving.ts";
import { fingerprintOf, sameContent } from "./fingerprint.ts";
import { LogStream, messageStream, snapshotFrame, untilSettled } from "./following.ts";
import { checkInput } from "./input-modes.ts";
import { KeyedTurns } from "./keyed-turns.ts";
import type { LiveTask } from "./live-task.ts";
import type { EngineContext } from "./options.ts";
import type { PushConfigs } from "./push-configs.ts";
import type { LogReader } from "./readers.ts";
import { EventMaker } from "./run.ts";
import { DuplicateSend, type Runner, type ServedAgent } from "./runner.ts";
import { adoption, sameScope, scopeOf } from "./scope.ts";
import type { Arrival } from "./task-write.ts";
import { timestampOf } from "./timestamp.ts";

/** A message that was taken in. */
interface Accepted {
  readonly live: LiveTask;
  /** Stands before the first event of a new task; a task that existed before is followed from its snapshot. */
  readonly reader: LogReader | undefined;
}

const OPEN_ATTEMPTS = 5;

/** Everything that happens to a message until an agent has it, and the answer until the caller has it. */
export class Sending {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #pushConfigs: PushConfigs;
  /** Parked tasks being taken up: a second message waits for the first. */
  readonly #opening = new Map<string, Promise<unknown>>();
  /** Sends with the same key at the same time: the second finds what the first has stored. */
  readonly #keys = new KeyedTurns();

  constructor(context: EngineContext, runner: Runner, pushConfigs: PushConfigs) {
    this.#context = context;
    this.#runner = runner;
    this.#pushConfigs = pushConfigs;
  }

  async send(served: ServedAgent, input: SendInput, call: Call): Promise<SendOutcome> {
    const accepting = this.#acceptOnce(served, input, call, false);
    const accepted = accepting instanceof Promise ? await accepting : accepting;
    if ("fingerprint" in accepted) return this.#answerAgain(accepted, served, input, call);
    const { live } = accepted;
    if (input.configuration?.returnImmediately === true) {
      // Only an early start leaves the task itself to be waited for; what its run says since is not.
      if (live.fold.number === 0) await live.flushed();
      return { task: this.#taskOf(live, input) };
    }
    const message = await live.settled();
    return message === undefined ? { task: this.#taskOf(live, input) } : { message };
  }

  async stream(served: ServedAgent, input: SendInput, call: Call, onEnd: () => void): Promise<FrameStream> {
    const accepted = await this.#acceptOnce(served, input, call, true);
    if ("fingerprint" in accepted) return this.#streamAgain(accepted, served, input, call, onEnd);
    const { live, reader } = accepted;
    if (reader === undefined) return this.#streamContinued(live, input, onEnd);
    live.onLoss(() => reader.close());
    const message = await closingOnError(this.#decidedSoon(live), reader);
    if (message !== undefined) {
      reader.close();
      return messageStream(message, onEnd);
    }
    live.shown = true;
    const { historyLength } = input.configuration ?? {};
    return new LogStream(reader, { historyLength, endOnInputRequired: true, onEnd });
  }

  /** A stream begins with a task: for one that existed before, the task as the message found it. */
  #streamContinued(live: LiveTask, input: SendInput, onEnd: () => void): FrameStream {
    const first = snapshotFrame(this.#taskOf(live, input), live.fold.number);
    const reader = this.#runner.readers.open(live.id, live.fold.number, true);
    live.onLoss(() => reader.close());
    const { state } = live.fold.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    return new LogStream(reader, { first, ended, endOnInputRequired: true, onEnd });
  }

  /** Takes the message in, or says what an earlier send with the same key came to. */
  #acceptOnce(
    served: ServedAgent,
    input: SendInput,
    call: Call,
    follow: boolean,
  ): Promise<Accepted | IdempotencyRecord> | Accepted {
    if (call.idempotencyKey === undefined) return this.#accept(served, input, call, follow);
    const scope = { ...scopeOf(served, call), key: call.idempotencyKey };
    return this.#keys.inTurn(JSON.stringify(Object.values(scope)), async () => {
      const known = await this.#context.store.findIdempotencyRecord(scope);
      if (known !== undefined) return sameContent(known, input);
      try {
        return await this.#accept(served, input, call, follow);
      } catch (error) {
        if (error instanceof DuplicateSend) return sameContent(error.record, input);
        throw error;
      }
    });
  }

  /** Not a promise where nothing has to be waited for, which is the most frequent case. */
  #accept(served: ServedAgent, input: SendInput, call: Call, follow: boolean): Promise<Accepted> | Accepted {
    checkInput(served.agent.profile, input.message, this.#context.limits);
    checkIds(input, call, this.#context.limits.id);
    const push = this.#pushConfigs.inline(input, call);
    const { taskId } = input.message;
    if (input.chosenId !== undefined) return this.#acceptChosen(served, input, call, follow, push, input.chosenId);
    if (taskId === undefined) return this.#submit(served, input, call, follow, push, this.#context.ids.task());
    if (push === undefined) return this.#continue(served, input, call, taskId, undefined);
    const add = () => this.#continue(served, input, call, taskId, push);
    return this.#pushConfigs.adding(scopeOf(served, call), taskId, push, add);
  }

  /** The task of that id if the caller has one, else a new one; an id that is another's is refused. */
  async #acceptChosen(
    served: ServedAgent,
    input: SendInput,
    call: Call,
    follow: boolean,
    push: PushRegistration | undefined,
    id: string,
  ): Promise<Accepted> {
    const stored = this.#runner.get(id) ?? (await this.#context.store.head(id));
    // A second message may have made the task while the store was asked.
    const known = this.#runner.get(id) ?? stored;
    if (known === undefined) return this.#submit(served, input, call, follow, push, id);
    if (!sameScope(known, scopeOf(served, call))) throw invalidParams("id", "is the id of another task already");
    const add = () => this.#continue(served, input, call, id, push);
    return push === undefined ? add() : this.#pushConfigs.adding(scopeOf(served, call), id, push, add);
  }

  #submit(
    served: ServedAgent,
    input: SendInput,
    call: Call,
    follow: boolean,
    push: PushRegistration | undefined,
    id: string,
  ): Promise<Accepted> | Accepted {
    const { ids, clock, limits } = this.#context;
    const bytes = bytesOf(input);
    checkRoom(served, this.#runner.loads, call, bytes, limits);
    const contextId = input.message.contextId ?? ids.context();
    const message = inTask(input.message, id, contextId);
    const idempotency = this.#claimOf(input, call);
    const fold = new TaskFold(limits.historyPage);
    const live = this.#runner.adopt(
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
    this.#runner.hold(live, bytes);
    live.shown = (input.configuration?.returnImmediately === true && !follow) || input.asTask === true;
    const reader = follow ? this.#runner.readers.open(id, 0, true) : undefined;
    const status = { state: "TASK_STATE_SUBMITTED" as const, timestamp: timestampOf(clock.now()) };
    const task = { id, contextId, status, history: [message] };
    if (push !== undefined && !live.shown) this.#showLater(live);
    live.push({ task }, { request: noteOf(input, call), claim: idempotency, push });
    live.turns.push(toTurn(message, input, call, 1));
    // A run that may be repeated without harm need not wait for the disk, nor one that no disk will remember. Nobody is
    // told before it is written.
    const repeatable = served.agent.onCrash === "resume" || !this.#context.store.durable;
    const early = repeatable && idempotency === undefined;
    this.#runner.begin(live, served, early);
    // Whoever waits for the answer also learns of a loss; only a key must be known to be new before anything else.
    if (idempotency === undefined) return { live, reader };
    return closingOnError(live.flushed(), reader).then(() => ({ live, reader }));
  }

  async #continue(
    served: ServedAgent,
    input: SendInput,
    call: Call,
    taskId: string,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
      const live = this.#runner.own(taskId, scopeOf(served, call));
      if (live !== undefined) {
        checkContext(input.message, live.contextId);
        if (live.closed || live.releasing) {
          await live.gone();
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
    call: Call,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    if (isTerminal(live.state)) throw ended(live.id);
    const bytes = bytesOf(input);
    checkBytes(this.#runner.loads, call, bytes, this.#context.limits);
    this.#runner.hold(live, bytes);
    const message = inTask(input.message, live.id, live.contextId);
    live.turns.push(toTurn(message, input, call, undefined));
    live.shown = true;
    // The answer has come before the question was even parked, so nothing is required any more.
    const state = live.state === "TASK_STATE_INPUT_REQUIRED" ? "TASK_STATE_WORKING" : live.state;
    live.push(new EventMaker(this.#context, live).status(state), this.#arrival(message, input, call, push));
    await live.flushed();
    const repeat = this.#runner.repeatOf(message);
    if (repeat !== undefined) throw repeat;
    if (!live.active) this.#runner.begin(live, served);
    return { live, reader: undefined };
  }

  /** A message for a task that waits: this process takes it up. */
  async #open(
    served: ServedAgent,
    input: SendInput,
    call: Call,
    taskId: string,
    push: PushRegistration | undefined,
  ): Promise<Accepted> {
    const head = await this.#context.store.head(taskId);
    if (head === undefined || !sameScope(head, scopeOf(served, call))) throw taskNotFound(taskId);
    checkContext(input.message, head.contextId);
    if (isTerminal(head.status.state)) throw ended(taskId);
    const { limits } = this.#context;
    const bytes = bytesOf(input);
    checkRoom(served, this.#runner.loads, call, bytes, limits);
    const fold = await this.#runner.unpark(head);
    try {
      checkBytes(this.#runner.loads, call, fold.historySize + bytes, limits);
    } catch (error) {
      this.#runner.park(fold);
      throw error;
    }
    const { state } = head.status;
    const live = this.#runner.adopt(
      { ...adoption(head), fold, fence: head.fence, attempt: 1, origin: "parked" },
      state,
    );
    this.#runner.hold(live, bytes);
    const message = inTask(input.message, taskId, head.contextId);
    live.shown = true;
    live.decide();
    live.turns.push(toTurn(message, input, call, undefined));
    live.beginTurn(fold.number + 1);
    const working = new EventMaker(this.#context, live).status("TASK_STATE_WORKING");
    live.push(working, this.#arrival(message, input, call, push));
    this.#runner.begin(live, served);
    await live.flushed();
    return { live, reader: undefined };
  }

  async #answerAgain(
    record: IdempotencyRecord,
    served: ServedAgent,
    input: SendInput,
    call: Call,
  ): Promise<SendOutcome> {
    if (record.reply !== undefined) return { message: record.reply };
    const live = this.#runner.get(record.taskId);
    if (live !== undefined && live.fold.number > 0) {
      if (input.configuration?.returnImmediately === true && !live.closed) {
        live.shown = true;
        return { task: this.#taskOf(live, input) };
      }
      const message = await live.settled();
      return message === undefined ? { task: this.#taskOf(live, input) } : { message };
    }
    const head = await this.#context.store.head(record.taskId);
    if (head === undefined) return { message: await this.#keptReply(served, call, record.taskId) };
    if (STATE_CLASS[head.status.state] === "active" && input.configuration?.returnImmediately !== true) {
      await untilSettled(this.#runner.readers.open(record.taskId, head.number));
    }
    return { task: (await this.#stored(record.taskId, this.#historyLength(input))).task };
  }

  async #streamAgain(
    record: IdempotencyRecord,
    served: ServedAgent,
    input: SendInput,
    call: Call,
    onEnd: () => void,
  ): Promise<FrameStream> {
    const message = record.reply ?? (await this.#runner.get(record.taskId)?.decided());
    if (message !== undefined) return messageStream(message, onEnd);
    const head = await this.#context.store.head(record.taskId);
    if (head === undefined) return messageStream(await this.#keptReply(served, call, record.taskId), onEnd);
    if (input.message.taskId === undefined) {
      return new LogStream(this.#runner.readers.open(record.taskId, 0), { endOnInputRequired: true, onEnd });
    }
    // What came before the repeated message is not its answer: the task as it is now is, and what follows.
    const { task, number } = await this.#stored(record.taskId, this.#historyLength(input));
    const { state } = task.status;
    const ended = isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED";
    const reader = this.#runner.readers.open(record.taskId, number);
    return new LogStream(reader, { first: snapshotFrame(task, number), ended, endOnInputRequired: true, onEnd });
  }

  /** The task vanished since the key was looked up: it was answered by a message, which is kept under the key. */
  async #keptReply(served: ServedAgent, call: Call, taskId: string): Promise<Message> {
    const key = call.idempotencyKey ?? "";
    const record = await this.#context.store.findIdempotencyRecord({ ...scopeOf(served, call), key });
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
    live.tellAfter = clock.now() + times.showTaskAfterMs;
    clock.after(times.showTaskAfterMs, () => {
      show(live);
      this.#runner.committer.onPushDue();
    });
  }

  /** A stream shows the task when the agent gives no sign for a while; a message it returns then completes the task. */
  async #decidedSoon(live: LiveTask): Promise<Message | undefined> {
    const stopTimer = this.#context.clock.after(this.#context.times.showTaskAfterMs, () => show(live));
    const message = await live.decided();
    stopTimer();
    if (live.loss !== undefined) throw live.loss;
    return message;
  }

  #taskOf(live: LiveTask, input: SendInput): Task {
    return live.fold.toTask({ historyLength: this.#historyLength(input) });
  }

  #historyLength(input: SendInput): number {
    const page = this.#context.limits.historyPage;
    return Math.min(input.configuration?.historyLength ?? page, page);
  }

  #arrival(received: Message, input: SendInput, call: Call, push: PushRegistration | undefined): Arrival {
    return { received, request: noteOf(input, call), claim: this.#claimOf(input, call), push };
  }

  #claimOf(input: SendInput, call: Call): IdempotencyClaim | undefined {
    if (call.idempotencyKey === undefined) return undefined;
    const expiresAt = this.#context.clock.now() + this.#context.times.idempotencyMs;
    return { key: call.idempotencyKey, fingerprint: fingerprintOf(input), expiresAt };
  }
}

function show(live: LiveTask): void {
  // Closed before anything was decided: the task is just being taken back for a message.
  if (live.closed) return;
  live.shown = true;
  live.onShown?.();
  live.decide();
}

async function closingOnError<T>(promise: Promise<T>, reader: LogReader | undefined): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    reader?.close();
    throw error;
  }
}
