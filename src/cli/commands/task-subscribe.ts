import { ProtocolError } from "../../model/errors.ts";
import { follow } from "../follow.ts";
import { type Output, printJson } from "../output.ts";
import { StreamRenderer } from "../render-stream.ts";
import { reportNextStep } from "../report.ts";
import { type ClientFlags, openAgent, withSession } from "../session.ts";
import { readCount, taskIdOf } from "./task-get.ts";

export interface TaskSubscribeFlags extends ClientFlags {
  readonly after?: string;
}

export function taskSubscribe(output: Output, id: string | undefined, flags: TaskSubscribeFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const { settings } = session;
    const taskId = taskIdOf(session, id);
    const after = readCount("--after", flags.after);
    const agent = await openAgent(session);
    if (agent.card.capabilities.streaming !== true) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The agent does not stream. Use task get --wait instead.");
    }
    const renderer = new StreamRenderer(output, settings.verbose);
    try {
      const events = agent.subscribe(taskId, after === undefined ? {} : { after });
      const outcome = await follow(session, agent, events, {
        resumesTask: false,
        onEvent: (event) => {
          if (settings.output === "text") renderer.show(event);
          else if (settings.stream) printJson(output, event, "line");
        },
      });
      renderer.close();
      if (!("task" in outcome)) return;
      if (settings.output === "json" && !settings.stream) printJson(output, outcome.task, "document");
      reportNextStep(session, outcome.task);
    } finally {
      renderer.close();
    }
  });
}
