/** One agent's tasks for one caller: the operations that both access modes need. */

import type { AgentService } from "../../../core/dialects/contract.ts";
import { createFrame } from "../../../core/dialects/shared/responses.ts";
import { sleep } from "../../../core/model/backoff.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import type { Message } from "../../../core/model/message.ts";
import type {
  CallContext,
  FrameStream,
  Operation,
  OutcomeOf,
  ReplyTo,
  SendInput,
  StreamFrame,
} from "../../../core/model/operation.ts";
import type { Clock } from "../../../core/model/ports.ts";
import { isInterrupted, isTerminal, type Task } from "../../../core/model/task.ts";
import type { CancelState } from "../codec/control.ts";

/** Whether the chosen id belongs to a task that accepts no more messages, or none from this caller. */
function isTaskIdTaken(error: unknown, taskId: string): boolean {
  if (!ProtocolError.is(error)) return false;
  const isNamed = error.metadata?.taskId === taskId;
  if (error.code === "UNSUPPORTED_OPERATION") return isNamed;
  const field = error.violations?.[0]?.field;
  return error.code === "INVALID_PARAMS" && (field === "message.contextId" || (field === "id" && isNamed));
}

/** The stream of a continued task begins with every artifact the task has produced so far. */
export function withoutEarlierArtifacts(event: StreamEvent): StreamEvent {
  if (!("task" in event)) return event;
  const { artifacts, ...rest } = event.task;
  return { task: rest };
}

/** Polling interval for agents that do not stream: initial and maximum. */
const POLL_MS = 50;
const MAX_POLL_MS = 1_000;

export class AgentTasks {
  readonly #service: AgentService;
  readonly #call: CallContext;
  readonly #clock: Pick<Clock, "after">;
  readonly #admit: () => unknown;

  /** `admit` throws if the caller makes too many requests. */
  constructor(service: AgentService, call: CallContext, clock: Pick<Clock, "after">, admit: () => unknown = () => {}) {
    this.#service = service;
    this.#call = call;
    this.#clock = clock;
    this.#admit = admit;
  }

  /** User requests count against the limit, reads on their behalf do not. */
  dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    if (operation.kind === "stream" || operation.kind === "send" || operation.kind === "cancel") this.#admit();
    return this.#service.dispatch(operation, this.#call);
  }

  /**
   * Sends a message to the task with this id, or to a new task with this id. If the id belongs to a task that has ended
   * or has another owner, it cannot be reused and the new task gets an id of its own: `hasChosenId` is false.
   */
  async open(
    message: Message,
    id: string,
    replyTo?: ReplyTo,
  ): Promise<{ readonly frames: FrameStream; readonly hasChosenId: boolean }> {
    const input = { message, alwaysTask: true, replyTo };
    try {
      return { frames: await this.#send({ ...input, chosenId: id }), hasChosenId: true };
    } catch (error) {
      if (!isTaskIdTaken(error, id)) throw error;
      return { frames: await this.#send(input), hasChosenId: false };
    }
  }

  /** Sends another message to a running task; the readers of the task receive its effects. */
  async add(message: Message, id: string, replyTo: ReplyTo): Promise<void> {
    const configuration = { returnImmediately: true };
    await this.dispatch({ kind: "send", message: { ...message, taskId: id }, configuration, replyTo });
  }

  async find(id: string): Promise<Task | undefined> {
    try {
      return await this.dispatch({ kind: "get", id, historyLength: 0 });
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }

  /** The current task, followed by its updates. A task that waits for input has none, unless `moreComes`. */
  async follow(id: string, moreComes: boolean): Promise<FrameStream> {
    const task = await this.dispatch({ kind: "get", id });
    if (isTerminal(task.status.state) || (isInterrupted(task.status.state) && !moreComes)) return singleFrame({ task });
    if (!this.#service.profile.streaming) return this.#poll(task, new Set());
    try {
      return await this.dispatch({ kind: "subscribe", id });
    } catch (error) {
      // The task ended after it was read.
      if (!ProtocolError.is(error) || error.code !== "UNSUPPORTED_OPERATION") throw error;
      return singleFrame({ task: await this.dispatch({ kind: "get", id }) });
    }
  }

  async cancel(id: string): Promise<{ readonly state: CancelState; readonly task?: Task }> {
    try {
      const task = await this.dispatch({ kind: "cancel", id });
      return { state: task.status.state === "TASK_STATE_CANCELED" ? "canceled" : "failed", task };
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
      return { state: error.code === "TASK_NOT_FOUND" ? "unknown" : "failed" };
    }
  }

  /**
   * The platform expects a stream for every answer, so an agent that does not stream is polled until its task is done.
   */
  async #send(input: SendInput): Promise<FrameStream> {
    if (this.#service.profile.streaming) return this.dispatch({ kind: "stream", ...input });
    const continued = input.chosenId === undefined ? undefined : await this.find(input.chosenId);
    // Artifacts of a continued task that were sent with earlier answers.
    const before = new Set(continued?.artifacts?.map((artifact) => JSON.stringify(artifact)));
    const configuration = { returnImmediately: true };
    const outcome = await this.dispatch({ kind: "send", ...input, configuration });
    return "task" in outcome ? this.#poll(outcome.task, before) : singleFrame(outcome);
  }

  async *#poll(begun: Task, before: ReadonlySet<string>): AsyncGenerator<readonly StreamFrame[]> {
    const { artifacts: _shownAtTheEnd, ...first } = begun;
    if (isRunning(begun)) yield [toFrame({ task: first })];
    let task = begun;
    for (let wait = POLL_MS; isRunning(task); wait = Math.min(2 * wait, MAX_POLL_MS)) {
      await sleep(this.#clock, wait);
      // Gives the consumer a chance to return if the caller has disconnected.
      yield NO_FRAMES;
      task = await this.dispatch({ kind: "get", id: begun.id });
    }
    yield toAnswerFrames(task, before);
  }
}

const NO_FRAMES: readonly StreamFrame[] = [];

function isRunning({ status: { state } }: Task): boolean {
  return !isTerminal(state) && !isInterrupted(state);
}

/** As updates, because a reader that wants only new content treats updates as new. */
function toAnswerFrames({ artifacts = [], ...task }: Task, before: ReadonlySet<string>): readonly StreamFrame[] {
  const scope = { taskId: task.id, contextId: task.contextId };
  const given = artifacts.filter((artifact) => !before.has(JSON.stringify(artifact)));
  return [
    ...given.map((artifact) => toFrame({ artifactUpdate: { ...scope, artifact, lastChunk: true } })),
    toFrame({ task }),
  ];
}

function toFrame(event: StreamFrame["event"]): StreamFrame {
  return createFrame(event, undefined);
}

async function* singleFrame(event: StreamFrame["event"]): AsyncGenerator<readonly StreamFrame[]> {
  yield [toFrame(event)];
}
