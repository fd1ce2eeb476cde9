import type { StreamEvent } from "../../model/event.ts";
import { safeLine } from "../../model/safe-text.ts";
import type { TaskStatus } from "../../model/task.ts";
import type { Output } from "../output.ts";
import { firstLineOf, stateName } from "../render/task.ts";
import { formatElapsed, truncateToWidth } from "../render/text.ts";

const TICK_MS = 1000;
const ANNOUNCE_AFTER_MS = 5000;
const MAX_STATUS_WIDTH = 60;

interface ProgressOptions {
  readonly agent: string;
  /** Events are printed as they arrive: after the first one, no waiting message is needed. */
  readonly eventsAreShown?: boolean;
}

/**
 * Progress while a command waits for an agent. A terminal shows the latest status and the elapsed time on a status
 * line; any output gets one line on what the command waits for, and one for all failed connections together.
 */
export interface Progress {
  start(options: ProgressOptions): void;
  /** An event arrived from the agent, which ends earlier connection failures. */
  receive(event: StreamEvent): void;
  /** The agent could not be reached; the request is retried. */
  retry(reason: string): void;
  stop(): void;
}

export interface FollowedTask {
  readonly taskId: string;
  readonly contextId: string;
}

/** The task that an event belongs to. */
export function taskOf(event: StreamEvent): FollowedTask | undefined {
  if ("message" in event) return undefined;
  if ("task" in event) return { taskId: event.task.id, contextId: event.task.contextId };
  const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
  return { taskId, contextId };
}

export function statusOf(event: StreamEvent): TaskStatus | undefined {
  if ("task" in event) return event.task.status;
  return "statusUpdate" in event ? event.statusUpdate.status : undefined;
}

export function createProgress(output: Output): Progress {
  let waiting: ProgressOptions | undefined;
  let startedAt = 0;
  let timers: NodeJS.Timeout[] = [];
  let task: FollowedTask | undefined;
  let status: TaskStatus | undefined;
  let failures = 0;
  let reason = "";
  let isDue = false;

  const statusIsShown = (): boolean => waiting !== undefined && output.canShowStatus;
  const draw = (): void => {
    const elapsed = performance.now() - startedAt;
    if (!statusIsShown() || elapsed < TICK_MS) return;
    output.status(`${formatElapsed(elapsed)}  ${describe()}`);
  };
  const describe = (): string => {
    if (failures > 0) return `Failed attempts: ${failures}. ${safeLine(reason)}`;
    return status === undefined ? `Waiting for ${safeLine(waiting?.agent ?? "")} to answer` : describeStatus(status);
  };
  const announce = (): void => {
    if (!isDue || waiting === undefined) return;
    const agent = safeLine(waiting.agent);
    if (task === undefined) {
      output.info(`Waiting for ${agent} to answer.`);
      return;
    }
    isDue = false;
    if (waiting.eventsAreShown === true) return;
    const state = status === undefined ? "" : ` (${truncateToWidth(describeStatus(status), MAX_STATUS_WIDTH)})`;
    const name = safeLine(`task ${task.taskId} in context ${task.contextId}`);
    output.info(`Waiting for ${agent} to finish ${name}${state}. Ctrl-C stops the waiting, not the task.`);
  };

  return {
    start(options) {
      if (waiting !== undefined) return;
      waiting = options;
      startedAt = performance.now();
      const due = setTimeout(() => {
        isDue = true;
        announce();
      }, ANNOUNCE_AFTER_MS);
      timers = [due, setInterval(draw, TICK_MS)];
    },
    receive(event) {
      if (failures > 1) output.info(`Reached the agent again after ${failures} failed attempts.`);
      failures = 0;
      task = taskOf(event) ?? task;
      status = statusOf(event) ?? status;
      if (task !== undefined) announce();
      // Artifact chunks can arrive many times a second and do not change the line.
      if (!("artifactUpdate" in event)) draw();
    },
    retry(why) {
      failures++;
      reason = why;
      if (failures === 1 && !statusIsShown()) output.info(why);
      else draw();
    },
    stop() {
      for (const timer of timers) clearInterval(timer);
      if (statusIsShown()) output.status(undefined);
      waiting = undefined;
    },
  };
}

function describeStatus({ message, state }: TaskStatus): string {
  const text = safeLine(firstLineOf(message));
  return text === "" ? stateName(state) : `${stateName(state)}: ${text}`;
}
