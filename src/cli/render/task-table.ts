import { isDataPart, isTextPart, type Message, type Part } from "../../model/message.ts";
import type { Task, TaskState } from "../../model/task.ts";
import { displayWidth, formatElapsed, safeLine, table, truncateToWidth } from "./text.ts";

const GAP = 2;
const MIN_MESSAGE_WIDTH = 10;
const PREFERRED_MESSAGE_WIDTH = 24;
const MIN_AGENT_WIDTH = 8;
const MAX_AGENT_WIDTH = 20;
/** Wider than any terminal line. */
const MAX_MESSAGE_WIDTH = 500;

export interface TaskRow {
  readonly id: string;
  readonly state: string;
  readonly age: string;
  readonly message: string;
}

/** One task as table cells. The age is that of its state: A2A has no creation time. */
export function toTaskRow(task: Task, now: number): TaskRow {
  const changed = Date.parse(task.status.timestamp ?? "");
  return {
    id: toCell(task.id),
    state: stateName(task.status.state),
    // Only the largest unit, to leave more room for the message.
    age: Number.isNaN(changed) ? "-" : (/^\d+\D/.exec(formatElapsed(now - changed))?.[0] ?? "-"),
    message: truncateToWidth(toCell(firstLine(task)), MAX_MESSAGE_WIDTH),
  };
}

/**
 * The rows as a table no wider than the terminal. Ids are never truncated, because other commands take them as
 * arguments: the message is truncated first, then the agent. Undefined if the table still does not fit.
 */
export function renderTaskTable(rows: readonly TaskRow[], agentName: string, columns: number): string | undefined {
  const head: TaskRow = { id: "ID", state: "STATE", age: "AGE", message: "MESSAGE" };
  const all = [head, ...rows];
  const widest = (cell: (row: TaskRow) => string): number =>
    all.reduce((width, row) => Math.max(width, displayWidth(cell(row))), 0) + GAP;
  const left = columns - widest(({ id }) => id) - widest(({ state }) => state) - widest(({ age }) => age);
  const room = Math.min(MAX_AGENT_WIDTH, Math.max(MIN_AGENT_WIDTH, left - GAP - PREFERRED_MESSAGE_WIDTH));
  const agent = truncateToWidth(toCell(agentName), room);
  const besideAgent = left - GAP - Math.max("AGENT".length, displayWidth(agent));
  const showsAgent = besideAgent >= MIN_MESSAGE_WIDTH;
  const messageWidth = showsAgent ? besideAgent : left;
  if (messageWidth < MIN_MESSAGE_WIDTH) return undefined;
  return table(
    all.map((row) => [
      row.id,
      row.state,
      ...(showsAgent ? [row === head ? "AGENT" : agent] : []),
      row.age,
      truncateToWidth(row.message, messageWidth),
    ]),
  );
}

/** The spelling that `--status` accepts. */
export function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-");
}

/** The line that identifies the task to the user: from their own message, else from the agent's. */
function firstLine({ artifacts, history, status }: Task): string {
  const asked = history?.find(({ role }) => role === "ROLE_USER");
  return firstLineOf(asked) || firstLineOf(status.message) || (artifacts?.[0]?.name ?? "");
}

export function firstLineOf(message: Message | undefined): string {
  for (const part of message?.parts ?? []) {
    const line = summaryOf(part);
    if (line !== "") return line;
  }
  return "";
}

function summaryOf(part: Part): string {
  if (isTextPart(part)) return part.text.split(/[\r\n]+/).find((line) => line.trim() !== "") ?? "";
  return isDataPart(part) ? JSON.stringify(part.data) : `[${part.filename ?? part.mediaType ?? "file"}]`;
}

function toCell(text: string): string {
  return safeLine(text.trim().replace(/\s+/g, " "));
}
