/** Tasks of one agent for one caller: what both ways of access ask of it. */

import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import type { CallContext, FrameStream, Operation, OutcomeOf, SendInput, StreamFrame } from "../../model/operation.ts";
import type { Clock } from "../../model/ports.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import type { AgentService } from "../contract.ts";
import { createFrame } from "../shared/responses.ts";
import type { CancelState } from "./control.ts";

/** Tasks that a message continues, and ids that no longer can be continued. */

/** The id that was chosen for a task is that of one that takes no more messages, or not these. */
function isTaskIdTaken(error: unknown, taskId: string): boolean {
  if (!ProtocolError.is(error)) return false;
  if (error.code === "UNSUPPORTED_OPERATION") return error.metadata?.taskId === taskId;
  const [{ description, field } = NO_VIOLATION] = error.violations ?? [];
  if (error.code !== "INVALID_PARAMS") return false;
  return field === "message.contextId" || (field === "id" && description.includes("another task"));
}

const NO_VIOLATION = { field: "", description: "" };

/** A task that goes on begins its stream with all it ever said. */
export function withoutEarlierArtifacts(event: StreamEvent): StreamEvent {
  if (!("task" in event)) return event;
  const { artifacts, ...rest } = event.task;
  return { task: rest };
}

/** How soon an agent that does not stream is asked for its task again: first, and at most. */
const POLL_MS = 50;
const MAX_POLL_MS = 1_000;

interface OpenedTask {
  readonly frames: FrameStream;
  /** The task has the id that was wanted. */
  readonly hasChosenId: boolean;
}

export class AgentTasks {
  readonly #service: AgentService;
  readonly #call: CallContext;
  readonly #clock: Pick<Clock, "after">;

  constructor(service: AgentService, call: CallContext, clock: Pick<Clock, "after">) {
    this.#service = service;
    this.#call = call;
    this.#clock = clock;
  }

  dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.#service.dispatch(operation, this.#call);
  }

  /**
   * Takes a message in, for the task of that id or a new one of that id. An id whose task has ended, or is somebody
   * else's, is not ours to give again: the new task gets one of its own then.
   */
  async open(message: Message, id: string): Promise<OpenedTask> {
    try {
      return { frames: await this.#send({ message, alwaysTask: true, chosenId: id }), hasChosenId: true };
    } catch (error) {
      if (!isTaskIdTaken(error, id)) throw error;
      return { frames: await this.#send({ message, alwaysTask: true }), hasChosenId: false };
    }
  }

  /** A task as it stands, and what follows; of one that asks nothing follows, unless `moreComes`. */
  async follow(id: string, moreComes: boolean): Promise<FrameStream> {
    const task = await this.dispatch({ kind: "get", id });
    if (isTerminal(task.status.state) || (isInterrupted(task.status.state) && !moreComes)) return singleFrame({ task });
    if (!this.#service.profile.streaming) return this.#poll(task, new Set());
    try {
      return await this.dispatch({ kind: "subscribe", id });
    } catch (error) {
      // Ended since it was looked at.
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

  /** The platform follows every answer; that of an agent that does not stream is looked at until it is there. */
  async #send(input: SendInput): Promise<FrameStream> {
    if (this.#service.profile.streaming) return this.dispatch({ kind: "stream", ...input });
    const before = input.chosenId === undefined ? NO_ARTIFACTS : await this.#artifactsBefore(input.chosenId);
    const configuration = { returnImmediately: true };
    const outcome = await this.dispatch({ kind: "send", ...input, configuration });
    return "task" in outcome ? this.#poll(outcome.task, before) : singleFrame(outcome);
  }

  /** What a task that goes on has given was shown then. */
  async #artifactsBefore(id: string): Promise<ReadonlySet<string>> {
    try {
      const { artifacts = [] } = await this.dispatch({ kind: "get", id, historyLength: 0 });
      return new Set(artifacts.map((artifact) => JSON.stringify(artifact)));
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return NO_ARTIFACTS;
      throw error;
    }
  }

  async *#poll(begun: Task, before: ReadonlySet<string>): AsyncGenerator<readonly StreamFrame[]> {
    const { artifacts: _shownAtTheEnd, ...first } = begun;
    if (isRunning(begun)) yield [toFrame({ task: first })];
    let task = begun;
    for (let wait = POLL_MS; isRunning(task); wait = Math.min(2 * wait, MAX_POLL_MS)) {
      await new Promise<void>((resolve) => {
        this.#clock.after(wait, resolve);
      });
      // Whoever left meanwhile is let go here.
      yield NO_FRAMES;
      task = await this.dispatch({ kind: "get", id: begun.id });
    }
    yield toAnswerFrames(task, before);
  }
}

const NO_FRAMES: readonly StreamFrame[] = [];
const NO_ARTIFACTS: ReadonlySet<string> = new Set();

function isRunning({ status: { state } }: Task): boolean {
  return !isTerminal(state) && !isInterrupted(state);
}

/** As updates, which whoever wants only what is new takes for new. */
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
