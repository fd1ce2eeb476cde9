/** Looks at a task until it has ended, where it cannot be streamed. */

import { ProtocolError } from "../../model/errors.ts";
import type { SendInput, SendOutcome, StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../model/task.ts";
import { ConnectionError, failedBeforeSending } from "../errors.ts";
import type { CallSettings } from "../transport/transport.ts";
import { type CallSetup, callWithRetries, isTransient, sleepBeforeCall } from "./retry.ts";

interface PollOptions {
  readonly setup: CallSetup;
  readonly settings: CallSettings;
  readonly id: string;
  /** Continue polling while the task waits for input. */
  readonly observes: boolean;
  /** The task as last delivered. */
  readonly known?: Task | undefined;
  /** Before the first look, and while nothing changes up to the interval of the setup. */
  readonly startMs?: number;
  /** The task was followed before, so the first look, too, outlasts the restart of a server. */
  readonly continues?: boolean;
}

const POLL_SLOWDOWN = 1.5;
/** What was there a moment ago may be missing once where a peer reads from a copy that is behind. */
const MAX_MISSING = 2;

export class TaskPoller {
  readonly #options: PollOptions;
  #last: string | undefined;
  #waitMs: number;
  #missing = 0;
  #isOver = false;

  constructor(options: PollOptions) {
    const { known, setup, startMs = setup.polling.baseMs } = options;
    this.#options = options;
    this.#last = known && JSON.stringify(known);
    this.#waitMs = startMs;
  }

  /** The task once it has changed; undefined when it has ended. */
  async look(): Promise<StreamFrame | undefined> {
    const { observes, settings, setup } = this.#options;
    const { baseMs, capMs } = setup.polling;
    while (!this.#isOver) {
      if (this.#last !== undefined) await sleepBeforeCall(setup, this.#waitMs, settings.signal);
      const task = await this.#read();
      if (task === undefined) continue;
      const { state } = task.status;
      this.#isOver = isTerminal(state) || (isInterrupted(state) && !observes);
      const json = JSON.stringify(task);
      if (json !== this.#last) {
        this.#last = json;
        this.#waitMs = Math.min(this.#waitMs, baseMs);
        return { event: { task }, json: `{"task":${json}}` };
      }
      this.#waitMs = Math.min(capMs, this.#waitMs * POLL_SLOWDOWN);
    }
    return undefined;
  }

  async #read(): Promise<Task | undefined> {
    const { continues = false, id, settings, setup } = this.#options;
    const isFirst = this.#last === undefined;
    // A task that is followed outlasts the restart of a server, as a stream does.
    const calls = isFirst && !continues ? setup : { ...setup, requestRetry: setup.streamRetry };
    try {
      const task = await callWithRetries(calls, { kind: "get", id }, settings);
      this.#missing = 0;
      return task;
    } catch (error) {
      const isMissing = ProtocolError.is(error) && error.code === "TASK_NOT_FOUND";
      if (!isMissing || isFirst || this.#missing++ >= MAX_MISSING) throw error;
      return undefined;
    }
  }
}

/** Many answers take less than the usual interval between two looks at a task. */
const FIRST_POLL_MS = 100;

/**
 * An agent that does not stream is asked to answer at once and then polled: the id of the task is known while the agent
 * works on it, so that the task can be cancelled and found again. No poller: the answer is complete.
 */
export async function sendAndPoll(
  setup: CallSetup,
  input: SendInput,
  settings: CallSettings,
): Promise<{ readonly frame?: StreamFrame; readonly poller: TaskPoller | undefined }> {
  const { chosenIds, operations, returnImmediately } = setup.endpoints.can;
  setup.notify({ kind: "fallback", message: "The agent does not stream; polling its task." });
  const configuration = { ...input.configuration, returnImmediately: true };
  const sent = returnImmediately && operations.get ? { ...input, configuration } : input;
  // Only an agent that answers late needs the time that was given for the answer.
  const polling = { setup, settings: { ...settings, timeoutMs: undefined }, observes: false };
  let outcome: SendOutcome;
  try {
    outcome = await callWithRetries(setup, { ...sent, kind: "send" }, settings);
  } catch (error) {
    const id = input.message.taskId ?? (chosenIds ? input.chosenId : undefined);
    const mayHaveArrived = ConnectionError.is(error) && isTransient(error) && !failedBeforeSending(error);
    if (id === undefined || !mayHaveArrived || settings.signal.aborted) throw error;
    return { poller: new TaskPoller({ ...polling, id, continues: true }) };
  }
  const frame = { event: outcome, json: JSON.stringify(outcome) };
  if ("message" in outcome || !operations.get) return { frame, poller: undefined };
  const { id, status } = outcome.task;
  const isOver = isTerminal(status.state) || isInterrupted(status.state);
  const known = { known: outcome.task, startMs: FIRST_POLL_MS };
  return { frame, poller: isOver ? undefined : new TaskPoller({ ...polling, ...known, id }) };
}

export function taskFrame(task: Task): StreamFrame {
  return { event: { task }, json: JSON.stringify({ task }) };
}
