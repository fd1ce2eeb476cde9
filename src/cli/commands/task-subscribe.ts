import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { follow, observe } from "../follow.ts";
import { type Output, printJson } from "../output.ts";
import { StreamRenderer } from "../render-stream.ts";
import { reportNextStep } from "../report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session.ts";
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
    session.progress.start({ agent: agent.card.name, eventsAreShown: settings.output === "text" || settings.stream });
    try {
      const events = observe(session, agent, taskId, after === undefined ? {} : { after });
      const outcome = await follow(session, agent, events, {
        resumesTask: false,
        throughAuthorisation: true,
        onEvent: (event) => {
          if (settings.output === "text") renderer.show(event);
          else if (settings.stream) printJson(output, event, "line");
          tellOfAuthorisation(session, event);
        },
      });
      session.progress.stop();
      renderer.close();
      if (!("task" in outcome)) return;
      if (settings.output === "json" && !settings.stream) printJson(output, outcome.task, "document");
      reportNextStep(session, outcome.task);
    } finally {
      renderer.close();
    }
  });
}

/** The one who watches may be the one who can give it. */
function tellOfAuthorisation({ output }: Session, event: StreamEvent): void {
  const status = "statusUpdate" in event ? event.statusUpdate.status : "task" in event ? event.task.status : undefined;
  if (status?.state !== "TASK_STATE_AUTH_REQUIRED") return;
  output.warn("The task waits for an authorisation, to be given outside of this conversation. Still following it.");
}
