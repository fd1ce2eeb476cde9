/** States, roles and times as they were written before 0.2. */

import { type Loss, type LossRule, toLoss } from "../../../model/loss.ts";
import type { Role } from "../../../model/message.ts";
import { isTerminal, type TaskState } from "../../../model/task.ts";
import type { Members } from "../json-members.ts";

export const STATE_LOSSES = {
  rejected: {
    kind: "bent",
    what: "status.state TASK_STATE_REJECTED",
    reason: "The dialect has no such state: a rejected task is told as failed.",
    direction: "said",
  },
  authRequired: {
    kind: "bent",
    what: "status.state TASK_STATE_AUTH_REQUIRED",
    reason: "The dialect has no such state: a task that waits for authorization is told as input-required.",
    direction: "said",
  },
  timestamp: {
    kind: "dropped",
    what: "status.timestamp",
    reason: "It is not a time in ISO 8601.",
    direction: "heard",
  },
} as const satisfies Record<string, LossRule>;

const STATE_NAMES = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_REJECTED: "failed",
  TASK_STATE_AUTH_REQUIRED: "input-required",
} as const satisfies Record<TaskState, string>;

/** `path` is that of the status. */
export function encodeState(state: TaskState, path: string, losses: Loss[]): string {
  if (state === "TASK_STATE_REJECTED") losses.push(toLoss(STATE_LOSSES.rejected, `${path}.state`));
  else if (state === "TASK_STATE_AUTH_REQUIRED") losses.push(toLoss(STATE_LOSSES.authRequired, `${path}.state`));
  return STATE_NAMES[state];
}

/** More than these dialects have: peers that learnt newer states use them to everyone. */
const STATE_BY_NAME: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ["submitted", "TASK_STATE_SUBMITTED"],
  ["working", "TASK_STATE_WORKING"],
  ["input-required", "TASK_STATE_INPUT_REQUIRED"],
  ["completed", "TASK_STATE_COMPLETED"],
  ["canceled", "TASK_STATE_CANCELED"],
  ["cancelled", "TASK_STATE_CANCELED"],
  ["failed", "TASK_STATE_FAILED"],
  ["rejected", "TASK_STATE_REJECTED"],
  ["auth-required", "TASK_STATE_AUTH_REQUIRED"],
]);

export function readState(members: Members): TaskState {
  if (members.raw("state") === undefined) members.reading.violateMember("state", "is required");
  const state = members.read("state", (word, reading) => {
    const known = STATE_BY_NAME.get(word);
    // A task whose state cannot be told: the model has no word for that, as 1.0 has none in its answers.
    if (known === undefined) reading.violate(word === "unknown" ? "must not be empty" : "is no state of a task");
    return known;
  });
  return state ?? "TASK_STATE_SUBMITTED";
}

const ROLE_BY_NAME: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ["user", "ROLE_USER"],
  ["agent", "ROLE_AGENT"],
]);

export function readRole(members: Members): Role {
  if (members.raw("role") === undefined) members.reading.violateMember("role", "is required");
  const role = members.read("role", (word, reading) => {
    const known = ROLE_BY_NAME.get(word);
    if (known === undefined) reading.violate("must be one of user, agent");
    return known;
  });
  return role ?? "ROLE_USER";
}

export function encodeRole(role: Role): string {
  return role === "ROLE_AGENT" ? "agent" : "user";
}

const ISO_8601 = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?$/;

/** In UTC with milliseconds. Times without a zone are UTC: that is what Python's `isoformat` leaves of one. */
export function readTimestamp(members: Members): string | undefined {
  return members.read("timestamp", (value, reading) => {
    const match = typeof value === "string" ? ISO_8601.exec(value) : null;
    const [, date, time, fraction = "", zone = "Z"] = match ?? [];
    const instant = match === null ? Number.NaN : Date.parse(`${date}T${time}${fraction}${zone}`);
    if (!Number.isNaN(instant)) return new Date(instant).toISOString();
    reading.lose(STATE_LOSSES.timestamp);
    return undefined;
  });
}

/** Whether a stream that answers a send ends with this state. What is told as input-required ends it like that does. */
export function endsSendStream(state: TaskState): boolean {
  return isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
