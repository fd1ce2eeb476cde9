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
export type StateClass = "active" | "interrupted" | "terminal";

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
