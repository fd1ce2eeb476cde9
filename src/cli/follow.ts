import { ConnectionError } from "../client/errors.ts";
import type { ClientEvent, RemoteAgent } from "../client/options.ts";
import { ProtocolError } from "../model/errors.ts";
import type { StreamEvent } from "../model/event.ts";
import type { SendOutcome } from "../model/operation.ts";
import { isInterrupted, isTerminal, type TaskState } from "../model/state.ts";
import type { Task } from "../model/task.ts";
import { CommandError } from "./errors.ts";
import type { Session } from "./session.ts";
import { TaskView } from "./task-view.ts";

/** Nothing more comes without the caller. An unknown state is neither: waiting goes on. */
export function isSettled(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state);
}

const POLLS_AT_FULL_PACE = 10;
const BACKOFF = 1.5;
const SLOWEST = 5;

/** Ask for the task until it is settled, `--poll-interval` apart and after a while up to five times that. */
export async function pollTask(
  session: Session,
  agent: RemoteAgent,
  id: string,
  options: { readonly historyLength?: number; readonly throughAuthorisation?: boolean } = {},
): Promise<Task> {
  const { throughAuthorisation, ...query } = options;
  const { pollIntervalMs } = session.settings;
  for (let polls = 1; ; polls++) {
    const task = await getKnown(agent, id, query);
    if (task !== undefined) {
      session.followed = { taskId: task.id, contextId: task.contextId };
      session.progress.receive({ task });
      if (isOver(task.status.state, throughAuthorisation)) return task;
    }
    const slower = BACKOFF ** Math.max(0, polls - POLLS_AT_FULL_PACE);
    await session.stop.sleep(pollIntervalMs * Math.min(SLOWEST, slower));
  }
}

/** Undefined while the agent calls the state unspecified: that is neither an end nor a question, so waiting goes on. */
export async function getKnown(
  agent: RemoteAgent,
  id: string,
  options: { readonly historyLength?: number },
): Promise<Task | undefined> {
  try {
    return await agent.get(id, options);
  } catch (error) {
    if (ProtocolError.is(error) && error.code === "INVALID_AGENT_RESPONSE" && isUnspecifiedState(error))
      return undefined;
    throw error;
  }
}

function isUnspecifiedState(error: ProtocolError): boolean {
  const [only, ...more] = error.violations ?? [];
  return more.length === 0 && only?.field === "status.state" && only.description === "must not be empty";
}

export interface FollowOptions {
  readonly onEvent: (event: StreamEvent) => void;
  /** The first frame shows a task that waits for the very message being sent. */
  readonly resumesTask: boolean;
  /** Go on while the task waits for an authorisation: it is given elsewhere, and the task goes on by itself. */
  readonly throughAuthorisation?: boolean;
}

function isOver(state: TaskState, throughAuthorisation = false): boolean {
  return isSettled(state) && !(throughAuthorisation && state === "TASK_STATE_AUTH_REQUIRED");
}

/** Follow until the task is settled or the agent answered with a message; where the stream fails, polling takes over. */
export async function follow(
  session: Session,
  agent: RemoteAgent,
  events: AsyncIterable<ClientEvent>,
  options: FollowOptions,
): Promise<SendOutcome> {
  const view = new TaskView();
  try {
    await readEvents(session, events, view, options);
  } catch (error) {
    if (view.taskId === undefined || !session.tasksCanBeRead || !isStreamFailure(error)) throw error;
    session.output.talk(`The stream failed (${error.message}); asking for the task instead.`);
  }
  session.stop.check();
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
  if (!session.tasksCanBeRead || isOver(seen.status.state, throughAuthorisation)) return { task: seen };
  const task = await pollTask(session, agent, seen.id, { throughAuthorisation });
  options.onEvent({ task });
  return { task };
}

/** The events of a task; of one that ended before anyone could follow it, the task as it ended. */
export async function* observe(
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
    output.talk("The task has already ended.");
    yield { event: { task } };
  }
}

/** The stream is lost, or the agent will not give it again; the task itself may be well. */
function isStreamFailure(error: unknown): error is Error {
  if (ConnectionError.is(error)) return error.code !== "aborted";
  return ProtocolError.is(error) && ["UNSUPPORTED_OPERATION", "METHOD_NOT_FOUND", "UNAVAILABLE"].includes(error.code);
}

async function readEvents(
  session: Session,
  events: AsyncIterable<ClientEvent>,
  view: TaskView,
  { onEvent, resumesTask, throughAuthorisation }: FollowOptions,
): Promise<void> {
  let first = true;
  for await (const { event } of events) {
    view.apply(event);
    noteTask(session, event);
    session.progress.receive(event);
    onEvent(event);
    const mayBeStale = first && resumesTask && "task" in event;
    first = false;
    const { state } = view;
    if (state === undefined || (mayBeStale && isInterrupted(state))) continue;
    if (isOver(state, throughAuthorisation)) return;
  }
}

function noteTask(session: Session, event: StreamEvent): void {
  if (session.followed !== undefined || "message" in event) return;
  if ("task" in event) session.followed = { taskId: event.task.id, contextId: event.task.contextId };
  else {
    const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
    session.followed = { taskId, contextId };
  }
}
