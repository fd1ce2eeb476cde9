/** What a link asks of the agent it serves. */
import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { Call, FrameStream, SendInput, StreamFrame } from "../../model/operation.ts";
import type { Clock } from "../../model/ports.ts";
import { isTerminal, type TaskState } from "../../model/state.ts";
import type { Task } from "../../model/task.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { isUsedUp } from "../xiaoyi/continuing.ts";
import type { CancelState } from "../xiaoyi/control.ts";
import { DIALECT_NAME } from "./version.ts";

/** An agent that does not stream is asked for its task this often. */
const POLL_MS = 1_000;
/** Messages of a task in which the user's last one is looked for. */
const HISTORY = 100;
const PAGE = 50;

export class Tasks {
  readonly #service: AgentService;
  readonly #call: Call;
  readonly #clock: Clock;

  constructor({ caller, service }: Pick<ServeContext, "caller" | "service">, clock: Clock) {
    this.#service = service;
    this.#clock = clock;
    this.#call = { caller, tenant: "", extensions: [], dialect: DIALECT_NAME };
  }

  /**
   * Takes a message in, for the task of that id or a new one of that id. An id whose task has ended, or is somebody
   * else's, is not ours to give again: the new task gets one of its own then.
   */
  async open(message: Message, id: string): Promise<FrameStream> {
    try {
      return await this.#send({ message, asTask: true, chosenId: id });
    } catch (error) {
      if (!isUsedUp(error, id)) throw error;
      return await this.#send({ message, asTask: true });
    }
  }

  async #send(input: SendInput): Promise<FrameStream> {
    if (this.#service.profile.streaming) return this.#service.dispatch({ kind: "stream", ...input }, this.#call);
    const outcome = await this.#service.dispatch({ kind: "send", ...input }, this.#call);
    return single("task" in outcome ? { task: outcome.task } : { message: outcome.message });
  }

  /** A task as it stands, and what follows; of one that asks nothing follows, unless `moreComes`. */
  async stored(id: string, moreComes: boolean): Promise<FrameStream> {
    const task = await this.#service.dispatch({ kind: "get", id }, this.#call);
    if (isTerminal(task.status.state) || (isAsking(task) && !moreComes)) return single({ task });
    if (!this.#service.profile.streaming) return this.#polled(id);
    try {
      return await this.#service.dispatch({ kind: "subscribe", id }, this.#call);
    } catch (error) {
      // Ended since it was looked at.
      if (!ProtocolError.is(error) || error.code !== "UNSUPPORTED_OPERATION") throw error;
      return single({ task: await this.#service.dispatch({ kind: "get", id }, this.#call) });
    }
  }

  async *#polled(id: string): AsyncGenerator<readonly StreamFrame[]> {
    for (;;) {
      const task = await this.#service.dispatch({ kind: "get", id }, this.#call);
      if (isTerminal(task.status.state) || isAsking(task)) {
        yield [frameOf({ task })];
        return;
      }
      await new Promise<void>((resolve) => {
        this.#clock.after(POLL_MS, resolve);
      });
    }
  }

  /** Gives a task that is under way another message; what comes of it is told to those who follow the task. */
  async add(message: Message, id: string): Promise<void> {
    const configuration = { returnImmediately: true };
    await this.#service.dispatch({ kind: "send", message: { ...message, taskId: id }, configuration }, this.#call);
  }

  async cancel(id: string): Promise<{ readonly state: CancelState; readonly task?: Task }> {
    try {
      const task = await this.#service.dispatch({ kind: "cancel", id }, this.#call);
      return { state: task.status.state === "TASK_STATE_CANCELED" ? "canceled" : "failed", task };
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
      return { state: error.code === "TASK_NOT_FOUND" ? "unknown" : "failed" };
    }
  }

  /** Tasks that are under way, and those that ended since; in whichever dialect they were made, some perhaps twice. */
  async *unfinished(since: number): AsyncGenerator<Task> {
    yield* this.#all("TASK_STATE_SUBMITTED", undefined);
    yield* this.#all("TASK_STATE_WORKING", undefined);
    for await (const task of this.#all(undefined, since)) if (!isAsking(task)) yield task;
  }

  /** Whether a task was made over this dialect. */
  async isOwn(id: string): Promise<boolean> {
    return (await this.#service.originOf(id, this.#call.caller)) === DIALECT_NAME;
  }

  async *#all(status: TaskState | undefined, since: number | undefined): AsyncGenerator<Task> {
    let pageToken = "";
    do {
      const page = await this.#service.dispatch(
        {
          kind: "list",
          pageSize: PAGE,
          historyLength: HISTORY,
          ...(status === undefined ? undefined : { status }),
          ...(since === undefined ? undefined : { statusTimestampAfter: since }),
          ...(pageToken === "" ? undefined : { pageToken }),
        },
        this.#call,
      );
      yield* page.tasks;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }
}

function isAsking({ status }: Task): boolean {
  return status.state === "TASK_STATE_INPUT_REQUIRED";
}

function frameOf(event: StreamFrame["event"]): StreamFrame {
  return { event, json: JSON.stringify(event) };
}

async function* single(event: StreamFrame["event"]): AsyncGenerator<readonly StreamFrame[]> {
  yield [frameOf(event)];
}
