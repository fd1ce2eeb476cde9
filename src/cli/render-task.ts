import type { Artifact } from "../model/artifact.ts";
import type { Message } from "../model/message.ts";
import type { Task, TaskStatus } from "../model/task.ts";
import { prettyJson, renderParts } from "./render-parts.ts";
import { block, field } from "./text-form.ts";

export interface RenderOptions {
  readonly verbose: boolean;
  /** Show the messages of the task's history. */
  readonly history: boolean;
}

/** What the agent said with its current status, then what it made, then what the task is called: the end is what a terminal shows. */
export function renderTask(task: Task, options: RenderOptions): string {
  const history = options.history ? (task.history ?? []).map((message) => renderHistory(message, options.verbose)) : [];
  const said = task.status.message === undefined ? "" : renderMessage(task.status.message, options.verbose);
  const artifacts = (task.artifacts ?? []).map((artifact) => renderArtifact(artifact, options.verbose));
  const metadata =
    options.verbose && task.metadata !== undefined ? block("Task Metadata", prettyJson(task.metadata)) : "";
  return `${history.join("")}${said}${artifacts.join("")}${metadata}${renderIdentity(task.id, task.contextId, task.status, options.verbose)}`;
}

export function renderIdentity(taskId: string, contextId: string, status: TaskStatus, verbose = false): string {
  const updated = verbose && status.timestamp !== undefined ? field("Updated", status.timestamp) : "";
  // Streams of the oldest dialects do not tell the context.
  const context = contextId === "" ? "" : field("Context ID", contextId);
  return `${field("Task ID", taskId)}${context}${field("State", status.state)}${updated}`;
}

export function renderArtifact(artifact: Artifact, verbose: boolean): string {
  return `${renderArtifactHead(artifact, verbose)}${renderParts(artifact.parts, verbose)}`;
}

export function renderArtifactHead(artifact: Artifact, verbose: boolean): string {
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

/** An answer without a task: there is no task to name, but a context may go on. */
export function renderReply(message: Message, verbose: boolean): string {
  const context = message.contextId === undefined ? "" : field("Context ID", message.contextId);
  return `${renderMessage(message, verbose)}${context}`;
}

/** A task among others: what the list was asked to include, and a blank line to tell it from the next. */
export function renderListed(task: Task, options: { readonly history: boolean }): string {
  const messages = options.history ? (task.history ?? []) : [];
  const history = messages.map((message) => renderHistory(message, false)).join("");
  const artifacts = (task.artifacts ?? []).map((artifact) => renderArtifact(artifact, false)).join("");
  return `${history}${artifacts}${renderIdentity(task.id, task.contextId, task.status, true)}\n`;
}
