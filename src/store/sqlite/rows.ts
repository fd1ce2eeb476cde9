import { TASK_STATES, type TaskState } from "../../model/state.ts";
import type { TaskStatus } from "../../model/task.ts";
import type { Scope, TaskHead } from "../contract.ts";
import { fromText } from "./text.ts";

/** On disk, so never renumbered. */
export const STATE_CODES = {
  TASK_STATE_SUBMITTED: 1,
  TASK_STATE_WORKING: 2,
  TASK_STATE_INPUT_REQUIRED: 3,
  TASK_STATE_AUTH_REQUIRED: 4,
  TASK_STATE_COMPLETED: 5,
  TASK_STATE_FAILED: 6,
  TASK_STATE_CANCELED: 7,
  TASK_STATE_REJECTED: 8,
} as const satisfies Record<TaskState, number>;

const STATES_BY_CODE = new Map<number, TaskState>(TASK_STATES.map((state) => [STATE_CODES[state], state]));

export function stateOf(code: number): TaskState {
  const state = STATES_BY_CODE.get(code);
  if (state === undefined) throw new RangeError(`no task state has the code ${code}`);
  return state;
}

export const TASK_COLUMNS =
  "seq, id, scope, context, state, status, status_ts, stamp, created_stamp, created_at, number, floor, fence, node, turn, attempt, cancel, message_segment, dialect, idempotency_key, metadata";

export interface TaskRow {
  readonly seq: number;
  readonly id: string;
  readonly scope: number;
  readonly context: string;
  readonly state: number;
  readonly status: string;
  readonly status_ts: number;
  readonly stamp: number;
  readonly created_stamp: number;
  readonly created_at: number;
  readonly number: number;
  readonly floor: number;
  readonly fence: number;
  readonly node: string | null;
  readonly turn: number;
  readonly attempt: number;
  readonly cancel: number;
  readonly message_segment: number | null;
  readonly dialect: string;
  readonly idempotency_key: string | null;
  readonly metadata: string | null;
}

export function toHead(row: TaskRow, scope: Scope): TaskHead {
  return {
    agent: scope.agent,
    tenant: scope.tenant,
    owner: scope.owner,
    id: fromText(row.id),
    contextId: fromText(row.context),
    status: JSON.parse(row.status) as TaskStatus,
    number: row.number,
    floor: row.floor,
    fence: row.fence,
    node: row.node === null ? undefined : fromText(row.node),
    turn: row.turn,
    attempt: row.attempt,
    cancelRequested: row.cancel === 1,
    dialect: fromText(row.dialect),
    createdAt: row.created_at,
  };
}
