import { withAnswer } from "../../model/answer.ts";
import type { JsonValue } from "../../model/json.ts";
import { isDataPart, isTextPart, isUrlPart, type Message, type Part } from "../../model/message.ts";
import { safeJson, safeLine } from "../../model/safe-text.ts";
import type { Artifact, Task, TaskState, TaskStatus } from "../../model/task.ts";
import { block, displayWidth, field, formatElapsed, table, truncateToWidth } from "./text.ts";

interface RenderOptions {
  readonly verbose: boolean;
  readonly history: boolean;
}

/** The status message, then the artifacts, then the ids: last, because a terminal shows the end of the output. */
export function renderTask(task: Task, options: RenderOptions): string {
  const history = options.history ? (task.history ?? []).map((message) => renderHistory(message, options.verbose)) : [];
  // With the history, the messages are shown already.
  const { status } = options.history ? task : withAnswer(task);
  const message = status.message === undefined ? "" : renderMessage(status.message, options.verbose);
  const artifacts = (task.artifacts ?? []).map((artifact) => renderArtifact(artifact, options.verbose));
  const metadata =
    options.verbose && task.metadata !== undefined ? block("Task Metadata", prettyJson(task.metadata)) : "";
  return `${history.join("")}${message}${artifacts.join("")}${metadata}${renderTaskIds(task.id, task.contextId, task.status, options.verbose)}`;
}

export function renderTaskIds(taskId: string, contextId: string, status: TaskStatus, verbose = false): string {
  const updated = verbose && status.timestamp !== undefined ? field("Updated", status.timestamp) : "";
  // Streams of the oldest dialects do not carry the context id.
  const context = contextId === "" ? "" : field("Context ID", contextId);
  return `${field("Task ID", taskId)}${context}${field("State", status.state)}${updated}`;
}

export function renderArtifact(artifact: Artifact, verbose: boolean): string {
  return `${renderArtifactHeader(artifact, verbose)}${renderParts(artifact.parts, verbose)}`;
}

export function renderArtifactHeader(artifact: Artifact, verbose: boolean): string {
  let head = field("Artifact", artifact.name || artifact.artifactId);
  if (!verbose) return head;
  head += field("Artifact ID", artifact.artifactId);
  if (artifact.description !== undefined) head += field("Artifact Description", artifact.description);
  if (artifact.metadata !== undefined) head += block("Artifact Metadata", prettyJson(artifact.metadata));
  return head;
}

export function renderMessage(message: Message, verbose: boolean): string {
  const speaker = message.role === "ROLE_USER" ? "user" : "agent";
  let head = field("Message", `from ${speaker}`);
  if (verbose) {
    head += field("Message ID", message.messageId);
    if (message.metadata !== undefined) head += block("Message Metadata", prettyJson(message.metadata));
  }
  return `${head}${renderParts(message.parts, verbose)}`;
}

function renderHistory(message: Message, verbose: boolean): string {
  return `${field("History", message.messageId)}${renderMessage(message, verbose)}`;
}

/** A response without a task: it has no task id, but its context may be continued. */
export function renderReply(message: Message, verbose: boolean): string {
  const context = message.contextId === undefined ? "" : field("Context ID", message.contextId);
  return `${renderMessage(message, verbose)}${context}`;
}

/** A task in a list: what the query included, and a blank line as a separator. */
export function renderListedTask(task: Task, options: { readonly history: boolean }): string {
  const messages = options.history ? (task.history ?? []) : [];
  const history = messages.map((message) => renderHistory(message, false)).join("");
  const artifacts = (task.artifacts ?? []).map((artifact) => renderArtifact(artifact, false)).join("");
  return `${history}${artifacts}${renderTaskIds(task.id, task.contextId, task.status, true)}\n`;
}

/** The number of bytes that a base64 string encodes, without decoding it. */
function decodedSize(base64: string): number {
  const length = base64.replace(/=+$/, "").length;
  return Math.floor((length * 3) / 4);
}

/** Every part is rendered: text as text, data as JSON, files by name, type and size. */
export function renderPart(part: Part, verbose: boolean): string {
  return `${renderContent(part)}${verbose ? renderDetails(part) : ""}`;
}

export function renderParts(parts: readonly Part[], verbose: boolean): string {
  return parts.map((part) => renderPart(part, verbose)).join("");
}

function renderContent(part: Part): string {
  if (isTextPart(part)) return block("Text", part.text);
  if (isDataPart(part)) return block("Data", prettyJson(part.data));
  if (isUrlPart(part)) return field("File", describeFile(part, `at ${part.url}`));
  return field("File", describeFile(part, `${decodedSize(part.raw)} bytes`));
}

function describeFile(part: Part, where: string): string {
  return `${part.filename ?? "unnamed"} (${part.mediaType ?? "unknown type"}, ${where})`;
}

function renderDetails(part: Part): string {
  const isFile = !isTextPart(part) && !isDataPart(part);
  let details = "";
  if (!isFile && part.filename !== undefined) details += field("Part Filename", part.filename);
  if (!isFile && part.mediaType !== undefined) details += field("Part Media Type", part.mediaType);
  if (part.metadata !== undefined) details += block("Part Metadata", prettyJson(part.metadata));
  return details;
}

export function prettyJson(value: JsonValue): string {
  return safeJson(value, 2);
}

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
