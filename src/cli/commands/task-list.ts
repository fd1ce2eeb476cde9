import type { RemoteAgent } from "../../client/options.ts";
import type { ListInput } from "../../model/operation.ts";
import { TASK_STATES, type TaskState } from "../../model/state.ts";
import { usage } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { renderListed } from "../render-task.ts";
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

async function printPage({ output, settings }: Session, agent: RemoteAgent, query: ListInput): Promise<void> {
  const page = await agent.listPage(query);
  if (settings.output === "json") {
    if (settings.stream) for (const task of page.tasks) printJson(output, task, "line");
    else printJson(output, page, "document");
    return;
  }
  for (const task of page.tasks) output.data(renderListed(task));
  output.data(field("Tasks", `${page.tasks.length} of ${page.totalSize}`));
  if (page.nextPageToken !== "") {
    output.data(field("Next Page", commandLine(settings, "task list", "--page-token", shellWord(page.nextPageToken))));
  }
}

/** All pages. As one JSON document they are one page: the whole answer, with no more to follow. */
async function printAll({ output, settings }: Session, agent: RemoteAgent, query: ListInput): Promise<void> {
  const asDocument = settings.output === "json" && !settings.stream;
  const tasks = [];
  let count = 0;
  for await (const task of agent.list(query)) {
    count++;
    if (asDocument) tasks.push(task);
    else if (settings.output === "json") printJson(output, task, "line");
    else output.data(renderListed(task));
  }
  if (asDocument) printJson(output, { tasks, nextPageToken: "", pageSize: count, totalSize: count }, "document");
  else if (settings.output === "text") output.data(field("Tasks", `${count} of ${count}`));
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
  const known = TASK_STATES.map((state) => state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-"));
  throw usage(`--status must be one of ${known.join(", ")}.`);
}

function readTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw usage(`--since must be a date such as 2026-01-31T12:00:00Z, not "${text}".`);
  return time;
}
