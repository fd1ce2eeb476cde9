import type { RemoteAgent } from "../../client/options.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { ListInput } from "../../model/operation.ts";
import { TASK_STATES, type Task, type TaskState } from "../../model/task.ts";
import { usageError } from "../errors.ts";
import { ifGiven, readInteger } from "../flag-values.ts";
import { type Output, printJson } from "../output.ts";
import { StreamRenderer } from "../render/stream.ts";
import { renderListedTask, renderTaskTable, stateName, type TaskRow, toTaskRow } from "../render/task.ts";
import { field, quoteForShell } from "../render/text.ts";
import { follow, pollTask, subscribeToTask } from "../session/follow.ts";
import { statusOf } from "../session/progress.ts";
import { reportNextStep, reportTask } from "../session/report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session/session.ts";
import { commandLine } from "../settings/read.ts";

export interface TaskGetFlags extends ClientFlags {
  readonly history?: string;
}

export function taskGet(output: Output, id: string | undefined, flags: TaskGetFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = requireTaskId(session, id);
    const historyLength = ifGiven(flags.history, (text) => readInteger("--history", text));
    const options = { historyLength };
    const agent = await openAgent(session);
    const { wait } = session.settings;
    if (wait) session.progress.start({ agent: agent.card.name });
    const task = wait ? await pollTask(session, agent, taskId, options) : await agent.get(taskId, options);
    session.progress.stop();
    reportTask(session, task, historyLength !== undefined);
  });
}

/** The task id of a command: its argument, or the setting `--task-id`. */
export function requireTaskId(session: Session, id: string | undefined): string {
  const found = id ?? session.settings.taskId;
  if (found === undefined || found === "")
    throw usageError("The task id is missing.", "Pass it as the argument, or as --task-id.");
  return found;
}

export interface TaskListFlags extends ClientFlags {
  readonly status?: string;
  readonly pageSize?: string;
  readonly pageToken?: string;
  readonly history?: string;
  readonly since?: string;
  readonly includeArtifacts?: boolean;
  readonly all?: boolean;
}

export function taskList(output: Output, flags: TaskListFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const query = readQuery(session, flags);
    const agent = await openAgent(session);
    if (flags.all === true) await printAll(session, agent, query);
    else await printPage(session, agent, query);
  });
}

async function printPage(session: Session, agent: RemoteAgent, query: ListInput): Promise<void> {
  const { output, settings } = session;
  const page = await agent.listPage(query);
  if (settings.output === "json") {
    if (settings.stream) for (const task of page.tasks) printJson(output, task, "line");
    else printJson(output, page, "document");
    return;
  }
  const list = createTaskPrinter(session, agent, query);
  for (const task of page.tasks) list.add(task);
  list.end();
  output.write(field("Tasks", `${page.tasks.length} of ${page.totalSize}`));
  if (page.nextPageToken === "") return;
  const next = commandLine(settings, "task list", "--page-token", quoteForShell(page.nextPageToken));
  output.write(field("Next Page", next));
}

/** Prints all pages. As a single JSON document they form one page without a next page token. */
async function printAll(session: Session, agent: RemoteAgent, query: ListInput): Promise<void> {
  const { output, settings } = session;
  const list = createTaskPrinter(session, agent, query);
  const asDocument = settings.output === "json" && !settings.stream;
  const tasks = [];
  let count = 0;
  for await (const task of agent.list(query)) {
    count++;
    if (asDocument) tasks.push(task);
    else if (settings.output === "json") printJson(output, task, "line");
    else list.add(task);
  }
  if (asDocument) printJson(output, { tasks, nextPageToken: "", pageSize: count, totalSize: count }, "document");
  else if (settings.output === "text") {
    list.end();
    output.write(field("Tasks", `${count} of ${count}`));
  }
}

/**
 * Prints tasks as text: a table on a terminal; the fields of the a2a-cli specification in a pipe, with `-o text`, or if
 * more was requested than fits into a row.
 */
function createTaskPrinter(
  { output, settings }: Session,
  agent: RemoteAgent,
  { historyLength, includeArtifacts }: ListInput,
): { add(task: Task): void; end(): void } {
  const history = historyLength !== undefined;
  const asTable =
    output.stdoutIsTerminal && !settings.outputIsGiven && !settings.verbose && !history && includeArtifacts !== true;
  if (!asTable) return { add: (task) => output.write(renderListedTask(task, { history })), end: () => {} };
  const now = Date.now();
  const rows: TaskRow[] = [];
  const fields: string[] = [];
  return {
    add: (task) => {
      rows.push(toTaskRow(task, now));
      fields.push(renderListedTask(task, { history }));
    },
    end: () => {
      if (rows.length > 0) output.write(renderTaskTable(rows, agent.card.name, output.columns) ?? fields.join(""));
    },
  };
}

function readQuery({ settings }: Session, flags: TaskListFlags): ListInput {
  if (flags.all === true && flags.pageToken !== undefined)
    throw usageError("--all and --page-token are mutually exclusive.");
  return {
    contextId: settings.contextId,
    status: ifGiven(flags.status, readState),
    pageSize: ifGiven(flags.pageSize, (text) => readInteger("--page-size", text, 1, 100)),
    pageToken: flags.pageToken,
    historyLength: ifGiven(flags.history, (text) => readInteger("--history", text)),
    statusTimestampAfter: ifGiven(flags.since, readTime),
    includeArtifacts: flags.includeArtifacts,
  };
}

/** Accepts `working`, `input-required` and `TASK_STATE_WORKING`. */
function readState(text: string): TaskState {
  const name = text.toUpperCase().replaceAll("-", "_");
  const found = TASK_STATES.find((state) => state === name || state === `TASK_STATE_${name}`);
  if (found !== undefined) return found;
  throw usageError(`--status must be one of ${TASK_STATES.map(stateName).join(", ")}.`);
}

function readTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw usageError(`--since must be a date such as 2026-01-31T12:00:00Z, not "${text}".`);
  return time;
}

export function taskCancel(output: Output, id: string | undefined, flags: ClientFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = requireTaskId(session, id);
    const agent = await openAgent(session);
    const task = await agent.cancel(taskId, { metadata: session.settings.metadata });
    reportTask(session, task, false, "TASK_STATE_CANCELED");
  });
}

export interface TaskSubscribeFlags extends ClientFlags {
  readonly after?: string;
}

export function taskSubscribe(output: Output, id: string | undefined, flags: TaskSubscribeFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const { settings } = session;
    const taskId = requireTaskId(session, id);
    const after = ifGiven(flags.after, (text) => readInteger("--after", text));
    const agent = await openAgent(session);
    if (agent.card.capabilities.streaming !== true) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "The agent does not stream. Use task get --wait instead.");
    }
    const renderer = new StreamRenderer(output, settings.verbose);
    session.progress.start({ agent: agent.card.name, eventsAreShown: settings.output === "text" || settings.stream });
    try {
      const events = subscribeToTask(session, agent, taskId, { after });
      const outcome = await follow(session, agent, events, {
        resumesTask: false,
        throughAuthorisation: true,
        onEvent: (event) => {
          if (settings.output === "text") renderer.show(event);
          else if (settings.stream) printJson(output, event, "line");
          warnIfAuthRequired(session, event);
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

/** The user who follows the task may be the one who can grant the authorisation. */
function warnIfAuthRequired({ output }: Session, event: StreamEvent): void {
  if (statusOf(event)?.state !== "TASK_STATE_AUTH_REQUIRED") return;
  output.warn("The task waits for an authorisation, to be given outside of this conversation. Still following it.");
}
