import type { SendOutcome } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type Task, type TaskState } from "../../model/task.ts";
import { printJson } from "../output.ts";
import { renderReply, renderTask } from "../render/task.ts";
import { field, quoteForShell } from "../render/text.ts";
import { commandLine } from "../settings/read.ts";
import type { Session } from "./session.ts";

/** How a session prints JSON: one document, or with `--stream` one object per line. */
export function jsonLayout(session: Session): "document" | "line" {
  return session.settings.stream ? "line" : "document";
}

/** The result of an agent-facing command in the requested format. */
export function reportResult(session: Session, value: unknown, render: () => string): void {
  if (session.settings.output === "json") printJson(session.output, value, jsonLayout(session));
  else session.output.write(render());
}

/** The final output of `send`: the response, and how to continue. */
export function reportOutcome(session: Session, outcome: SendOutcome): void {
  const { verbose } = session.settings;
  reportResult(session, outcome, () =>
    "message" in outcome
      ? renderReply(outcome.message, verbose)
      : renderTask(outcome.task, { verbose, history: false }),
  );
  if ("task" in outcome) reportNextStep(session, outcome.task);
}

/** The final output of commands whose result is a task. `expected` is the state that does not cause a warning. */
export function reportTask(session: Session, task: Task, history: boolean, expected?: TaskState): void {
  reportResult(session, task, () => renderTask(task, { verbose: session.settings.verbose, history }));
  reportNextStep(session, task, expected);
}

/** Prints the command that continues the task, in text after the ids, in JSON on stderr; warns about failure states. */
export function reportNextStep(session: Session, task: Task, expected?: TaskState): void {
  const next = formatNextCommand(session, task);
  const { state } = task.status;
  if (session.settings.output === "text") session.output.write(field("Resume", next));
  else if (!isTerminal(state)) session.output.info(`Resume: ${next}`);
  const warning = state === expected ? undefined : WARNINGS[state];
  if (warning !== undefined) session.output.warn(`Task ${task.id} ${warning}`);
  if (state !== "TASK_STATE_AUTH_REQUIRED") return;
  session.output.info(describeAuthRequired(session, task));
}

/**
 * A2A 7.6: the authorisation is granted out of band, after which the task may continue by itself; messages to the task
 * are only for communication about it.
 */
function describeAuthRequired({ settings, tasksCanBeRead }: Session, task: Task): readonly string[] {
  const id = quoteForShell(task.id);
  return [
    task.status.message === undefined
      ? "The agent did not describe what it needs; ask its operator."
      : "Do what the agent asks for above, outside of this conversation. The task waits for it and then continues.",
    ...(tasksCanBeRead ? [`Follow it: ${commandLine(settings, "task subscribe", id)}`] : []),
    `Reply to it: ${commandLine(settings, "send", "--task-id", id, "--text '<reply>'")}`,
  ];
}

function formatNextCommand({ settings, tasksCanBeRead }: Session, task: Task): string {
  const { state } = task.status;
  if (state === "TASK_STATE_AUTH_REQUIRED" && tasksCanBeRead)
    return commandLine(settings, "task subscribe", quoteForShell(task.id));
  if (isInterrupted(state))
    return commandLine(settings, "send", "--task-id", quoteForShell(task.id), "--text '<reply>'");
  if (isTerminal(state)) {
    const context = task.contextId === "" ? [] : ["--context-id", quoteForShell(task.contextId)];
    return commandLine(settings, "send", ...context, "--text '<message>'");
  }
  return commandLine(settings, tasksCanBeRead ? "task get --wait" : "task cancel", quoteForShell(task.id));
}

const WARNINGS: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: "failed.",
  TASK_STATE_REJECTED: "was rejected by the agent.",
  TASK_STATE_CANCELED: "was canceled.",
  TASK_STATE_INPUT_REQUIRED: "waits for your reply.",
  TASK_STATE_AUTH_REQUIRED: "waits for an authorisation.",
};
