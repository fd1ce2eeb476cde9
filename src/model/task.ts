import type { JsonObject } from "./json.ts";
import type { Message, Part } from "./message.ts";

/** The states a task can be shown in, spelled as A2A 1.0 spells them on the wire. */
export const TASK_STATES = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
] as const;

export type TaskState = (typeof TASK_STATES)[number];

/** Active: the agent is or will be at work. Interrupted: it waits for someone. Terminal: nothing follows. */
type StateClass = "active" | "interrupted" | "terminal";

export const STATE_CLASS = {
  TASK_STATE_SUBMITTED: "active",
  TASK_STATE_WORKING: "active",
  TASK_STATE_COMPLETED: "terminal",
  TASK_STATE_FAILED: "terminal",
  TASK_STATE_CANCELED: "terminal",
  TASK_STATE_INPUT_REQUIRED: "interrupted",
  TASK_STATE_REJECTED: "terminal",
  TASK_STATE_AUTH_REQUIRED: "interrupted",
} as const satisfies Record<TaskState, StateClass>;

export function isTerminal(state: TaskState): boolean {
  return STATE_CLASS[state] === "terminal";
}

export function isInterrupted(state: TaskState): boolean {
  return STATE_CLASS[state] === "interrupted";
}

const NO_STATES: readonly TaskState[] = [];

/** Wherever a task may still move, it may also end. */
const TERMINAL_STATES: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

const STATES_AFTER_START: readonly TaskState[] = [
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
  ...TERMINAL_STATES,
];

/**
 * From each state, the states that may follow. A state may be repeated while it is not terminal (a new status message,
 * a new timestamp). Nothing returns to SUBMITTED but SUBMITTED itself.
 */
export const TRANSITIONS = {
  TASK_STATE_SUBMITTED: ["TASK_STATE_SUBMITTED", ...STATES_AFTER_START],
  TASK_STATE_WORKING: STATES_AFTER_START,
  TASK_STATE_INPUT_REQUIRED: STATES_AFTER_START,
  TASK_STATE_AUTH_REQUIRED: STATES_AFTER_START,
  TASK_STATE_COMPLETED: NO_STATES,
  TASK_STATE_FAILED: NO_STATES,
  TASK_STATE_CANCELED: NO_STATES,
  TASK_STATE_REJECTED: NO_STATES,
} as const satisfies Record<TaskState, readonly TaskState[]>;

export function isTransitionAllowed(from: TaskState, to: TaskState): boolean {
  return (TRANSITIONS[from] as readonly TaskState[]).includes(to);
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
  const copy: { -readonly [K in keyof Artifact]: Artifact[K] } = { artifactId: artifact.artifactId, parts };
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
