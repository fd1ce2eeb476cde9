import type { TaskState } from "./state.ts";

const NOWHERE: readonly TaskState[] = [];

/** Wherever a task may still move, it may also end. */
const ENDS: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

const RUNNING: readonly TaskState[] = [
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
  ...ENDS,
];

/**
 * From each state, the states that may follow. A state may be repeated while it is not terminal (a new status message,
 * a new timestamp). Nothing returns to SUBMITTED but SUBMITTED itself.
 */
export const TRANSITIONS = {
  TASK_STATE_SUBMITTED: ["TASK_STATE_SUBMITTED", ...RUNNING],
  TASK_STATE_WORKING: RUNNING,
  TASK_STATE_INPUT_REQUIRED: RUNNING,
  TASK_STATE_AUTH_REQUIRED: RUNNING,
  TASK_STATE_COMPLETED: NOWHERE,
  TASK_STATE_FAILED: NOWHERE,
  TASK_STATE_CANCELED: NOWHERE,
  TASK_STATE_REJECTED: NOWHERE,
} as const satisfies Record<TaskState, readonly TaskState[]>;

export function mayMove(from: TaskState, to: TaskState): boolean {
  return (TRANSITIONS[from] as readonly TaskState[]).includes(to);
}
