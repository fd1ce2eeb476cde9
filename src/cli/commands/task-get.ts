import { usage } from "../errors.ts";
import { getKnown, pollTask } from "../follow.ts";
import { type Output, printJson } from "../output.ts";
import { jsonForm, reportTask } from "../report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session.ts";
import { field } from "../text-form.ts";

export interface TaskGetFlags extends ClientFlags {
  readonly history?: string;
}

export function taskGet(output: Output, id: string | undefined, flags: TaskGetFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = taskIdOf(session, id);
    const historyLength = readCount("--history", flags.history);
    const options = historyLength === undefined ? {} : { historyLength };
    const agent = await openAgent(session);
    const { wait } = session.settings;
    if (wait) session.progress.start({ agent: agent.card.name });
    const task = wait ? await pollTask(session, agent, taskId, options) : await getKnown(agent, taskId, options);
    session.progress.stop();
    if (task === undefined) reportUnspecified(session, taskId);
    else reportTask(session, task, { history: historyLength !== undefined });
  });
}

/** The state is told as it was received; the model has no word for it, so nothing else of the task is known. */
function reportUnspecified(session: Session, id: string): void {
  const state = "TASK_STATE_UNSPECIFIED";
  if (session.settings.output === "json") printJson(session.output, { id, status: { state } }, jsonForm(session));
  else session.output.data(field("Task ID", id) + field("State", state));
}

/** The task a command is about: its argument, or `--task-id` and what stands for it. */
export function taskIdOf(session: Session, id: string | undefined): string {
  const found = id ?? session.settings.taskId;
  if (found === undefined || found === "") throw usage("No task is named.", "Give the task's id as the argument.");
  return found;
}

export function readCount(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usage(`${flag} must be a whole number, not "${text}".`);
}
