import { ConnectionError } from "../../client/errors.ts";
import type { ClientEvent, RemoteAgent } from "../../client/options.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { isPlainText, type Message, type Part } from "../../model/message.ts";
import type { SendOutcome } from "../../model/operation.ts";
import { type Artifact, isInterrupted, isTerminal, type Task, type TaskState } from "../../model/task.ts";
import { CommandError } from "../errors.ts";
import { taskOf } from "./progress.ts";
import type { Session } from "./session.ts";

/** The task has ended or needs its caller. The unspecified state is neither, so waiting continues. */
export function isSettled(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state);
}

const POLLS_BEFORE_BACKOFF = 10;
const BACKOFF_FACTOR = 1.5;
const MAX_BACKOFF = 5;

/** Polls the task until it is settled, every `--poll-interval`, backing off to five times that. */
export async function pollTask(
  session: Session,
  agent: RemoteAgent,
  id: string,
  options: { readonly historyLength?: number; readonly throughAuthorisation?: boolean } = {},
): Promise<Task> {
  const { throughAuthorisation, ...query } = options;
  const { pollIntervalMs } = session.settings;
  for (let polls = 1; ; polls++) {
    const task = await agent.get(id, query);
    session.followedTask = { taskId: task.id, contextId: task.contextId };
    session.progress.receive({ task });
    if (stopsFollowing(task.status.state, throughAuthorisation)) return task;
    const slower = BACKOFF_FACTOR ** Math.max(0, polls - POLLS_BEFORE_BACKOFF);
    await session.stop.sleep(pollIntervalMs * Math.min(MAX_BACKOFF, slower));
  }
}

interface FollowOptions {
  readonly onEvent: (event: StreamEvent) => void;
  /** The first frame shows the task still waiting for the message being sent. */
  readonly resumesTask: boolean;
  /** Keep following a task that requires authorisation: it is granted out of band, and the task then continues. */
  readonly throughAuthorisation?: boolean;
}

function stopsFollowing(state: TaskState, throughAuthorisation = false): boolean {
  return isSettled(state) && !(throughAuthorisation && state === "TASK_STATE_AUTH_REQUIRED");
}

/** Follows until the task is settled or the agent replies with a message; falls back to polling if the stream fails. */
export async function follow(
  session: Session,
  agent: RemoteAgent,
  events: AsyncIterable<ClientEvent>,
  options: FollowOptions,
): Promise<SendOutcome> {
  const view = new StreamedTask();
  try {
    await readEvents(session, events, view, options);
  } catch (error) {
    if (view.taskId === undefined || !session.tasksCanBeRead || !isStreamFailure(error)) throw error;
    session.output.info(`The stream failed (${error.message}); asking for the task instead.`);
  }
  session.stop.throwIfStopped();
  if (view.message !== undefined) return { message: view.message };
  const seen = view.toTask();
  if (seen === undefined) {
    throw new CommandError(
      "A2ACLI_ERR_INTERNAL",
      "The agent closed the stream without an answer.",
      "--debug shows the exchange.",
    );
  }
  const { throughAuthorisation = false } = options;
  if (!session.tasksCanBeRead || stopsFollowing(seen.status.state, throughAuthorisation)) return { task: seen };
  const task = await pollTask(session, agent, seen.id, { throughAuthorisation });
  options.onEvent({ task });
  return { task };
}

/** The events of a task; if it ended before the subscription, only the final task. */
export async function* subscribeToTask(
  { output }: Session,
  agent: RemoteAgent,
  id: string,
  options: Parameters<RemoteAgent["subscribe"]>[1] = {},
): AsyncGenerator<ClientEvent> {
  let begun = false;
  try {
    for await (const event of agent.subscribe(id, options)) {
      begun = true;
      yield event;
    }
  } catch (error) {
    if (begun || !ProtocolError.is(error) || error.code !== "UNSUPPORTED_OPERATION") throw error;
    const task = await agent.get(id, options.signal === undefined ? {} : { signal: options.signal });
    if (!isTerminal(task.status.state)) throw error;
    output.info("The task has already ended.");
    yield { event: { task } };
  }
}

/** The stream broke, or the agent refuses to resume it; the task itself may still be running. */
function isStreamFailure(error: unknown): error is Error {
  if (ConnectionError.is(error)) return error.code !== "aborted";
  return ProtocolError.is(error) && ["UNSUPPORTED_OPERATION", "METHOD_NOT_FOUND", "UNAVAILABLE"].includes(error.code);
}

async function readEvents(
  session: Session,
  events: AsyncIterable<ClientEvent>,
  view: StreamedTask,
  { onEvent, resumesTask, throughAuthorisation }: FollowOptions,
): Promise<void> {
  let first = true;
  for await (const { event } of events) {
    view.apply(event);
    session.followedTask ??= taskOf(event);
    session.progress.receive(event);
    onEvent(event);
    const mayBeStale = first && resumesTask && "task" in event;
    first = false;
    const { state } = view;
    if (state === undefined || (mayBeStale && isInterrupted(state))) continue;
    if (stopsFollowing(state, throughAuthorisation)) return;
  }
}

/**
 * A task assembled from stream events. Unlike the fold of a log, it accepts any event: third-party agents may break the
 * rules, and what they send is still to be shown.
 */
export class StreamedTask {
  #task: Task | undefined;
  #message: Message | undefined;
  readonly #artifacts = new Map<string, { artifact: Artifact; parts: Part[] }>();
  #history: Message[] = [];

  apply(event: StreamEvent): void {
    if ("message" in event) this.#message = event.message;
    else if ("task" in event) this.#begin(event.task);
    else if ("statusUpdate" in event) {
      const { contextId, status, taskId } = event.statusUpdate;
      const earlier = this.#task?.status.message;
      if (earlier !== undefined) this.#history.push(earlier);
      this.#task = { ...(this.#task ?? { id: taskId, contextId }), status };
    } else {
      const { append, artifact, contextId, taskId } = event.artifactUpdate;
      this.#task ??= { id: taskId, contextId, status: { state: "TASK_STATE_WORKING" } };
      const known = append === true ? this.#artifacts.get(artifact.artifactId) : undefined;
      if (known === undefined) this.#artifacts.set(artifact.artifactId, { artifact, parts: [...artifact.parts] });
      else for (const part of artifact.parts) addPart(known.parts, part);
    }
  }

  get message(): Message | undefined {
    return this.#message;
  }

  get taskId(): string | undefined {
    return this.#task?.id;
  }

  get state(): Task["status"]["state"] | undefined {
    return this.#task?.status.state;
  }

  toTask(): Task | undefined {
    if (this.#task === undefined) return undefined;
    const artifacts = [...this.#artifacts.values()].map(({ artifact, parts }) => ({ ...artifact, parts: [...parts] }));
    return {
      ...this.#task,
      artifacts: artifacts.length > 0 ? artifacts : undefined,
      history: this.#history.length > 0 ? this.#history : undefined,
    };
  }

  #begin(task: Task): void {
    this.#task = task;
    this.#history = [...(task.history ?? [])];
    this.#artifacts.clear();
    for (const artifact of task.artifacts ?? []) {
      this.#artifacts.set(artifact.artifactId, { artifact, parts: [...artifact.parts] });
    }
  }
}

function addPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  if (last !== undefined && isPlainText(last) && isPlainText(part))
    parts[parts.length - 1] = { text: last.text + part.text };
  else parts.push(part);
}
