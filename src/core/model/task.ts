import type { JsonObject, Writable } from "./json.ts";
import type { Message, Part } from "./message.ts";

/** Active: the agent is or will be at work. Interrupted: it waits for someone. Terminal: nothing follows. */
type StateClass = "active" | "interrupted" | "terminal";

/**
 * The states of a task, spelled as A2A 1.0 spells them on the wire. Only tasks of other agents are in the unspecified
 * one: their agent does not say, or names a state of a later version. It is not an end, so such a task is read again.
 */
export const STATE_CLASS = {
  TASK_STATE_UNSPECIFIED: "active",
  TASK_STATE_SUBMITTED: "active",
  TASK_STATE_WORKING: "active",
  TASK_STATE_COMPLETED: "terminal",
  TASK_STATE_FAILED: "terminal",
  TASK_STATE_CANCELED: "terminal",
  TASK_STATE_INPUT_REQUIRED: "interrupted",
  TASK_STATE_REJECTED: "terminal",
  TASK_STATE_AUTH_REQUIRED: "interrupted",
} as const satisfies Record<string, StateClass>;

export type TaskState = keyof typeof STATE_CLASS;

/** Those that a task can be shown in, all but the unspecified one. */
export const TASK_STATES = (Object.keys(STATE_CLASS) as readonly TaskState[]).filter(
  (state) => state !== "TASK_STATE_UNSPECIFIED",
);

export function isTerminal(state: TaskState): boolean {
  return STATE_CLASS[state] === "terminal";
}

export function isInterrupted(state: TaskState): boolean {
  return STATE_CLASS[state] === "interrupted";
}

/**
 * A task that has not ended may move to every other state and may repeat its own (a new status message, a new
 * timestamp), but never returns to SUBMITTED, and never becomes unspecified.
 */
export function isTransitionAllowed(from: TaskState, to: TaskState): boolean {
  if (isTerminal(from) || to === "TASK_STATE_UNSPECIFIED") return false;
  return to !== "TASK_STATE_SUBMITTED" || from === "TASK_STATE_SUBMITTED";
}

export interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

/**
 * The same artifact with other parts. Built member by member: an object made by spreading another and adding to it gets
 * a hidden class of its own in V8, which costs more than the object, for every chunk of every stream.
 */
export function withParts(artifact: Omit<Artifact, "parts">, parts: readonly Part[]): Artifact {
  const copy: Writable<Artifact> = { artifactId: artifact.artifactId, parts };
  if (artifact.name !== undefined) copy.name = artifact.name;
  if (artifact.description !== undefined) copy.description = artifact.description;
  if (artifact.metadata !== undefined) copy.metadata = artifact.metadata;
  if (artifact.extensions !== undefined) copy.extensions = artifact.extensions;
  return copy;
}

let lastMilliseconds = Number.NaN;
let lastFormatted = "";

/** ISO 8601 in UTC. Events of one millisecond share one string: formatting is dearer than the event. */
export function formatTimestamp(milliseconds: number): string {
  if (milliseconds !== lastMilliseconds) {
    lastMilliseconds = milliseconds;
    lastFormatted = new Date(milliseconds).toISOString();
  }
  return lastFormatted;
}

export interface TaskStatus {
  readonly state: TaskState;
  readonly message?: Message;
  /** ISO 8601, UTC, milliseconds. */
  readonly timestamp?: string;
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  /** Oldest first. The message of the current status is not in it; it joins when the next status replaces it. */
  readonly history?: readonly Message[];
  readonly metadata?: JsonObject;
}
