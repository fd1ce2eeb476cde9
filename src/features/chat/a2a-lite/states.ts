import { type Loss, toLoss } from "../../../core/model/loss.ts";
import type { TaskState } from "../../../core/model/task.ts";
import { LOSSES } from "./losses.ts";
import { type LiteState, TERMINAL_STATES, type TerminalLiteState } from "./message.ts";

const LITE_STATES = {
  // Only tasks of other agents are in this state, and those are not shown.
  TASK_STATE_UNSPECIFIED: "working",
  TASK_STATE_SUBMITTED: "accepted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "cancelled",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "input-required",
} as const satisfies Record<TaskState, LiteState>;

const TASK_STATES = {
  accepted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  failed: "TASK_STATE_FAILED",
  cancelled: "TASK_STATE_CANCELED",
  rejected: "TASK_STATE_REJECTED",
} as const satisfies Record<LiteState, TaskState>;

/** `losses`: gets what the state does not show. */
export function toLiteState(state: TaskState, losses?: Loss[]): LiteState {
  if (state === "TASK_STATE_AUTH_REQUIRED") losses?.push(toLoss(LOSSES.authRequired, "status.state"));
  return LITE_STATES[state];
}

export function toTaskState(state: LiteState): TaskState {
  return TASK_STATES[state];
}

export function isTerminalLiteState(state: LiteState): state is TerminalLiteState {
  return TERMINAL_STATES.some((terminal) => terminal === state);
}
