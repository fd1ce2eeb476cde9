/** Words of 0.3 for what 1.0 spells as enums. */
import type { Role } from "../../model/message.ts";
import { TASK_STATES, type TaskState } from "../../model/state.ts";

export const WORD_OF_STATE = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
} as const satisfies Record<TaskState, string>;

/** Is said of a task whose state cannot be told, which the model has no word for either. */
export const UNKNOWN_STATE = "unknown";

/** Some peers spell one of them with two L. */
const STATE_OF_WORD: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ...TASK_STATES.map((state): [string, TaskState] => [WORD_OF_STATE[state], state]),
  ["cancelled", "TASK_STATE_CANCELED"],
]);

export function stateOfWord(word: unknown): TaskState | undefined {
  return STATE_OF_WORD.get(word);
}

export const WORD_OF_ROLE = { ROLE_USER: "user", ROLE_AGENT: "agent" } as const satisfies Record<Role, string>;

const ROLE_OF_WORD: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ["user", "ROLE_USER"],
  ["agent", "ROLE_AGENT"],
]);

export function roleOfWord(word: unknown): Role | undefined {
  return ROLE_OF_WORD.get(word);
}
