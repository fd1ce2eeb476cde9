import type { Output } from "../output.ts";
import { reportTask } from "../report.ts";
import { type ClientFlags, openAgent, withSession } from "../session.ts";
import { taskIdOf } from "./task-get.ts";

export function taskCancel(output: Output, id: string | undefined, flags: ClientFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = taskIdOf(session, id);
    const agent = await openAgent(session);
    const { metadata } = session.settings;
    const task = await agent.cancel(taskId, metadata === undefined ? {} : { metadata });
    reportTask(session, task, { history: false, expected: "TASK_STATE_CANCELED" });
  });
}
