/** Names of states and roles in 0.3 and earlier versions. */

import type { Role } from "../../model/message.ts";
import { STATE_CLASS, type TaskState } from "../../model/task.ts";

export const STATE_NAMES = {
  TASK_STATE_UNSPECIFIED: "unknown",
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
} as const satisfies Record<TaskState, string>;

/** All states in every version: peers that support newer states send them to any caller. Some spell one with two Ls. */
const STATE_BY_NAME: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ...(Object.keys(STATE_CLASS) as TaskState[]).map((state): [string, TaskState] => [STATE_NAMES[state], state]),
  ["cancelled", "TASK_STATE_CANCELED"],
]);

export function decodeState(name: unknown): TaskState | undefined {
  return STATE_BY_NAME.get(name);
}

export const ROLE_NAMES = { ROLE_USER: "user", ROLE_AGENT: "agent" } as const satisfies Record<Role, string>;

const ROLE_BY_NAME: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ["user", "ROLE_USER"],
  ["agent", "ROLE_AGENT"],
]);

export function decodeRole(name: unknown): Role | undefined {
  return ROLE_BY_NAME.get(name);
}
