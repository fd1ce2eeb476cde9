import type { RemoteAgent } from "../../client/options.ts";
import type { ListInput } from "../../model/operation.ts";
import { TASK_STATES, type TaskState } from "../../model/state.ts";
import type { Task } from "../../model/task.ts";
import { usage } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { renderListed } from "../render-task.ts";
import { renderTaskTable, stateName, type TaskRow, taskRow } from "../render-task-table.ts";
import { type ClientFlags, commandLine, openAgent, type Session, withSession } from "../session.ts";
import { field, shellWord } from "../text-form.ts";
import { readCount } from "./task-get.ts";

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
  output.data(field("Tasks", `${page.tasks.length} of ${page.totalSize}`));
  if (page.nextPageToken !== "") {
    output.data(field("Next Page", commandLine(settings, "task list", "--page-token", shellWord(page.nextPageToken))));
  }
}

/** All pages. As one JSON document they are one page: the whole answer, with no more to follow. */
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
    output.data(field("Tasks", `${count} of ${count}`));
  }
}

/**
 * Tasks as text. A person at a terminal gets a table; a pipe, a caller that asks for `-o text` and one that asks
 * for more than fits into a row get the fields of the a2a-cli specification.
 */
function createTaskPrinter(
  { output, settings }: Session,
  agent: RemoteAgent,
  { historyLength, includeArtifacts }: ListInput,
): { add(task: Task): void; end(): void } {
  const history = historyLength !== undefined;
  const asTable =
    output.dataIsTerminal && !settings.outputIsGiven && !settings.verbose && !history && includeArtifacts !== true;
  if (!asTable) return { add: (task) => output.data(renderListed(task, { history })), end: () => {} };
  const now = Date.now();
  const rows: TaskRow[] = [];
  const fields: string[] = [];
  return {
    add: (task) => {
      rows.push(taskRow(task, now));
      fields.push(renderListed(task, { history }));
    },
    end: () => {
      if (rows.length > 0) output.data(renderTaskTable(rows, agent.card.name, output.columns) ?? fields.join(""));
    },
  };
}

function readQuery({ settings }: Session, flags: TaskListFlags): ListInput {
  const pageSize = readCount("--page-size", flags.pageSize);
  if (pageSize !== undefined && (pageSize < 1 || pageSize > 100)) throw usage("--page-size must be 1 to 100.");
  if (flags.all === true && flags.pageToken !== undefined) throw usage("--all and --page-token exclude each other.");
  const historyLength = readCount("--history", flags.history);
  return {
    ...(settings.contextId === undefined ? {} : { contextId: settings.contextId }),
    ...(flags.status === undefined ? {} : { status: readState(flags.status) }),
    ...(pageSize === undefined ? {} : { pageSize }),
    ...(flags.pageToken === undefined ? {} : { pageToken: flags.pageToken }),
    ...(historyLength === undefined ? {} : { historyLength }),
    ...(flags.since === undefined ? {} : { statusTimestampAfter: readTime(flags.since) }),
    ...(flags.includeArtifacts === true ? { includeArtifacts: true } : {}),
  };
}

/** `working`, `input-required` and `TASK_STATE_WORKING` are all understood. */
export function readState(text: string): TaskState {
  const name = text.toUpperCase().replaceAll("-", "_");
  const found = TASK_STATES.find((state) => state === name || state === `TASK_STATE_${name}`);
  if (found !== undefined) return found;
  throw usage(`--status must be one of ${TASK_STATES.map(stateName).join(", ")}.`);
}

function readTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw usage(`--since must be a date such as 2026-01-31T12:00:00Z, not "${text}".`);
  return time;
}
