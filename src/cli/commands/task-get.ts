import { usage } from "../errors.ts";
import { pollTask } from "../follow.ts";
import type { Output } from "../output.ts";
import { reportTask } from "../report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session.ts";

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
    const task = wait ? await pollTask(session, agent, taskId, options) : await agent.get(taskId, options);
    reportTask(session, task, { history: historyLength !== undefined });
  });
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
