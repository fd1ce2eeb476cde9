import { randomUUID } from "node:crypto";
import type { RemoteAgent } from "../../client/options.ts";
import { withAnswer } from "../../model/answer.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { SendOutcome } from "../../model/operation.ts";
import { MAX_TIMER_MS } from "../../model/ports.ts";
import type { Task } from "../../model/task.ts";
import { type Output, printJson } from "../output.ts";
import { StreamRenderer } from "../render/stream.ts";
import { renderMessage } from "../render/task.ts";
import { follow, isSettled, pollTask } from "../session/follow.ts";
import { type PartFlag, readParts, readStandardInput } from "../session/message-parts.ts";
import { reportNextStep, reportOutcome } from "../session/report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session/session.ts";

export interface SendFlags extends ClientFlags {
  readonly parts?: readonly PartFlag[];
  readonly acceptedOutput?: readonly string[];
  /** The name of `--async` in the protocol. */
  readonly returnImmediately?: boolean;
}

type SendRequest = {
  readonly message: Message;
  readonly configuration?: { readonly returnImmediately?: boolean; readonly acceptedOutputModes?: readonly string[] };
  readonly metadata?: NonNullable<Session["settings"]["metadata"]>;
};

export function send(output: Output, args: readonly string[], flags: SendFlags): Promise<void> {
  const named = flags.returnImmediately === true ? { ...flags, async: true } : flags;
  return withSession(named, output, async (session) => {
    const { settings } = session;
    const input = { isTerminal: process.stdin.isTTY === true, read: readStandardInput };
    const parts = await readParts(args, flags.parts ?? [], input);
    const { contextId, metadata, taskId } = settings;
    const ids = { contextId, taskId };
    const message: Message = { messageId: randomUUID(), role: "ROLE_USER", parts, ...ids };
    const agent = await openAgent(session);
    if (settings.verbose && settings.output === "text") output.write(renderMessage(message, true));
    const request: SendRequest = {
      message,
      metadata,
      configuration: flags.acceptedOutput === undefined ? undefined : { acceptedOutputModes: flags.acceptedOutput },
    };
    if (settings.stream && !settings.async) await stream(session, agent, request);
    else
      reportOutcome(
        session,
        settings.async ? await sendWithoutWaiting(agent, request) : await sendAndWait(session, agent, request),
      );
  });
}

function sendWithoutWaiting(agent: RemoteAgent, request: SendRequest): Promise<SendOutcome> {
  return agent.send({ ...request, configuration: { ...request.configuration, returnImmediately: true } });
}

async function stream(session: Session, agent: RemoteAgent, request: SendRequest): Promise<void> {
  const { output, settings } = session;
  if (agent.card.capabilities.streaming !== true) {
    output.info("The agent does not stream; waiting for its answer instead.");
    reportOutcome(session, await sendAndWait(session, agent, request));
    return;
  }
  const renderer = new StreamRenderer(output, settings.verbose);
  session.progress.start({ agent: agent.card.name, eventsAreShown: true });
  try {
    const outcome = await follow(session, agent, agent.stream(request), {
      resumesTask: settings.taskId !== undefined,
      onEvent: (event) => {
        if (settings.output === "json") printJson(output, event, "line");
        else renderer.show(event);
      },
    });
    session.progress.stop();
    renderer.close();
    if ("task" in outcome) reportNextStep(session, outcome.task);
  } finally {
    renderer.close();
  }
}

/**
 * If the agent supports streaming, waits by following the stream: the task's id is known at once, and a long wait
 * survives proxies that close idle connections. A message to an existing task is sent without streaming, because the
 * first frame of a stream does not show whether the task has already received the message.
 */
async function sendAndWait(session: Session, agent: RemoteAgent, request: SendRequest): Promise<SendOutcome> {
  session.progress.start({ agent: agent.card.name });
  try {
    if (agent.card.capabilities.streaming === true && session.settings.taskId === undefined) {
      const outcome = await followQuietly(session, agent, request);
      if (outcome !== undefined) return outcome;
    }
    // No limit by default: the usual timeout is meant for a single request.
    const outcome = await agent.send(request, { timeoutMs: session.settings.timeoutMs ?? MAX_TIMER_MS });
    if ("message" in outcome || isSettled(outcome.task.status.state)) return outcome;
    session.followedTask = { taskId: outcome.task.id, contextId: outcome.task.contextId };
    return { task: await pollTask(session, agent, outcome.task.id) };
  } finally {
    session.progress.stop();
  }
}

/** The finished task as the agent returns it; undefined if the agent does not stream after all. */
async function followQuietly(
  session: Session,
  agent: RemoteAgent,
  request: SendRequest,
): Promise<SendOutcome | undefined> {
  let outcome: SendOutcome;
  try {
    outcome = await follow(session, agent, agent.stream(request), { resumesTask: false, onEvent: () => {} });
  } catch (error) {
    const unable =
      ProtocolError.is(error) && (error.code === "UNSUPPORTED_OPERATION" || error.code === "METHOD_NOT_FOUND");
    if (unable && session.followedTask === undefined) return undefined;
    throw error;
  }
  if ("message" in outcome) return outcome;
  try {
    const task = await agent.get(outcome.task.id);
    // Not every agent keeps the messages of its work, which may be all of its answer.
    const isComplete = hasAnswer(task) || !hasAnswer(outcome.task);
    return { task: isComplete ? task : { ...task, history: outcome.task.history ?? task.history } };
  } catch {
    // The stream delivered everything; an agent that does not store finished tasks is not an error here.
    return outcome;
  }
}

function hasAnswer(task: Task): boolean {
  return task.artifacts !== undefined || withAnswer(task).status.message !== undefined;
}
