import { createInterface, type Interface } from "node:readline";
import type { ClientEvent, RemoteAgent } from "../../client/options.ts";
import { formatDuration } from "../../model/duration.ts";
import { MAX_TIMER_MS } from "../../model/ports.ts";
import { isInterrupted } from "../../model/task.ts";
import { CommandError, toFailure, usageError } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { ChatRenderer, StreamRenderer } from "../render/stream.ts";
import { quoteForShell } from "../render/text.ts";
import { follow, subscribeToTask } from "../session/follow.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session/session.ts";
import { commandLine } from "../settings/read.ts";

const HELP = "Every line is a message. /cancel ends the current task, /follow watches one that waits, /quit leaves.";

/** Several turns with one agent. The state for the next turn exists only here, and is printed when the chat ends. */
interface Conversation {
  readonly session: Session;
  readonly agent: RemoteAgent;
  readonly show: Pick<StreamRenderer, "show" | "close">;
  contextId: string | undefined;
  /** Set while a task waits for the next message. */
  taskId: string | undefined;
  /** Set while a turn runs. */
  turn: AbortController | undefined;
  isClosed: boolean;
}

export function chat(output: Output, flags: ClientFlags): Promise<void> {
  if (process.stdin.isTTY === true && !output.stdoutIsTerminal) {
    throw usageError(
      "chat requires a terminal for its output, or messages on standard input.",
      "Use dragoman send for a single message.",
    );
  }
  const converse = async (session: Session): Promise<void> => {
    const agent = await openAgent(session);
    const conversation: Conversation = {
      session,
      agent,
      show: createRenderer(session),
      contextId: session.settings.contextId,
      taskId: session.settings.taskId,
      turn: undefined,
      isClosed: false,
    };
    if (process.stdin.isTTY === true) await runInteractive(conversation);
    else await runFromPipe(conversation);
    printResumeCommand(conversation);
  };
  return withSession({ ...flags, stream: true }, output, converse, { timeoutCoversAll: false });
}

function createRenderer(session: Session): Conversation["show"] {
  const { output, settings } = session;
  if (settings.output === "json") return { show: (event) => printJson(output, event, "line"), close: () => {} };
  return output.stdoutIsTerminal && !settings.verbose
    ? new ChatRenderer(output)
    : new StreamRenderer(output, settings.verbose);
}

/** Sends messages from a pipe one at a time; the first failure ends the chat. */
async function runFromPipe(conversation: Conversation): Promise<void> {
  const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    if (line.trim() === "/quit") break;
    if (line.trim() === "/cancel") await cancelTask(conversation);
    else if (line.trim() === "/follow") await followTask(conversation);
    else if (line.trim() !== "") await takeTurn(conversation, line);
  }
  lines.close();
}

/** Interactive mode: commands work while the agent is busy, and a failed turn does not end the chat. */
function runInteractive(conversation: Conversation): Promise<void> {
  const { output } = conversation.session;
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
  output.info(`${conversation.agent.card.name}. ${HELP}`);
  lines.prompt();
  return new Promise((resolve) => {
    lines.on("line", (line) => void onLine(conversation, lines, line.trim()));
    lines.on("SIGINT", () => {
      if (conversation.turn === undefined) lines.close();
      else conversation.turn.abort();
    });
    lines.on("close", () => {
      conversation.isClosed = true;
      conversation.turn?.abort();
      resolve();
    });
  });
}

async function onLine(conversation: Conversation, lines: Interface, line: string): Promise<void> {
  const { output } = conversation.session;
  try {
    if (line === "/quit") return lines.close();
    if (line === "/cancel") await cancelTask(conversation);
    else if (line === "/follow" && conversation.turn === undefined) await followTask(conversation);
    else if (line === "/help") output.info(HELP);
    else if (line.startsWith("/")) output.info(`Unknown command ${line}. ${HELP}`);
    else if (line !== "" && conversation.turn !== undefined)
      output.info("The agent is still busy. /cancel ends its task.");
    else if (line !== "") await takeTurn(conversation, line);
  } catch (error) {
    const failure = toFailure(error);
    output.error(`${failure.message}${failure.hint === null ? "" : ` ${failure.hint}`}`);
  }
  if (conversation.turn === undefined && !conversation.isClosed) lines.prompt();
}

function takeTurn(conversation: Conversation, text: string): Promise<void> {
  const resumesTask = conversation.taskId !== undefined;
  return runTurn(conversation, (signal) => streamAnswer(conversation, text, signal), { resumesTask });
}

/** Follows a task that waits for something out of band until it has continued and needs its caller again. */
function followTask(conversation: Conversation): Promise<void> {
  const { agent, session, taskId } = conversation;
  if (taskId === undefined) {
    session.output.info("No task is waiting.");
    return Promise.resolve();
  }
  return runTurn(conversation, (signal) => subscribeToTask(session, agent, taskId, { signal }), {
    throughAuthorisation: true,
  });
}

async function runTurn(
  conversation: Conversation,
  events: (signal: AbortSignal) => AsyncIterable<ClientEvent>,
  how: { readonly resumesTask?: boolean; readonly throughAuthorisation?: boolean },
): Promise<void> {
  const { agent, session, show } = conversation;
  const turn = new AbortController();
  conversation.turn = turn;
  session.followedTask = undefined;
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    turn.abort();
  }, session.settings.timeoutMs ?? MAX_TIMER_MS);
  try {
    const outcome = await follow(session, agent, events(turn.signal), {
      resumesTask: false,
      ...how,
      onEvent: (event) => show.show(event),
    });
    const { contextId } = "task" in outcome ? outcome.task : outcome.message;
    conversation.contextId = contextId ?? conversation.contextId;
    conversation.taskId = "task" in outcome && isInterrupted(outcome.task.status.state) ? outcome.task.id : undefined;
    session.followedTask = undefined;
    if ("task" in outcome && outcome.task.status.state === "TASK_STATE_AUTH_REQUIRED") {
      show.close();
      session.output.warn("The task waits for an authorisation, to be given outside of this conversation.");
      session.output.info("/follow waits for it, a message replies to it.");
    }
  } catch (error) {
    if (late) {
      const limit = formatDuration(session.settings.timeoutMs ?? 0);
      throw new CommandError("A2ACLI_ERR_TIMEOUT", `Timed out after ${limit}; the task is still running.`);
    }
    if (!turn.signal.aborted) throw error;
    session.output.info("Stopped following; the task keeps running. /cancel cancels it.");
  } finally {
    clearTimeout(timer);
    show.close();
    conversation.turn = undefined;
  }
}

/** Streams if the agent supports it; otherwise yields its single response as a stream. */
async function* streamAnswer(
  conversation: Conversation,
  text: string,
  signal: AbortSignal,
): AsyncGenerator<ClientEvent> {
  const { agent, contextId, session, taskId } = conversation;
  const message = { parts: [{ text }], contextId, taskId };
  const request = { message, metadata: session.settings.metadata };
  if (agent.card.capabilities.streaming === true) yield* agent.stream(request, { signal });
  else yield { event: await agent.send(request, { signal }) };
}

async function cancelTask(conversation: Conversation): Promise<void> {
  const { agent, session, show } = conversation;
  const id = conversation.taskId ?? session.followedTask?.taskId;
  if (id === undefined) {
    session.output.info("No task to cancel.");
    return;
  }
  const task = await agent.cancel(id);
  conversation.taskId = undefined;
  // A running turn receives the end of its task itself.
  if (conversation.turn === undefined) {
    show.show({ statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } });
    show.close();
  }
}

function printResumeCommand({ contextId, session, taskId }: Conversation): void {
  if (taskId !== undefined) {
    session.output.info(`Resume: ${commandLine(session.settings, "chat", "--task-id", quoteForShell(taskId))}`);
  } else if (contextId !== undefined) {
    session.output.info(`Resume: ${commandLine(session.settings, "chat", "--context-id", quoteForShell(contextId))}`);
  }
}
