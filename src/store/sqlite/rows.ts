import { TASK_STATES, type TaskState } from "../../model/state.ts";
import type { TaskStatus } from "../../model/task.ts";
import type { Scope, TaskHead } from "../contract.ts";
import { StoreError } from "../errors.ts";
import { packed, parseJson, type StoredText, toNumber, unmark, unpack } from "./text.ts";

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
  if (state === undefined) throw new StoreError("damaged", `No task state has the code ${code}.`);
  return state;
}

/** A task as a snapshot needs it. */
export interface TaskRow {
  readonly seq: number;
  readonly number: number;
  readonly floor: number;
  readonly messageSegment: number | undefined;
  /** Where it stands in a list. */
  readonly place: number;
  readonly id: string;
  readonly contextId: string;
  readonly status: string;
  readonly metadata: string | undefined;
}

/** Of a table, or a query that has its columns, as one text; `place` says where the task stands. */
export function taskText(place: string): string {
  return packed(`seq, number, floor, message_segment, ${place}, id, context, status, metadata`);
}

export function toTaskRows(stored: StoredText | null): TaskRow[] {
  return unpack(stored, 9).map(([seq, number, floor, messageSegment, place, ...texts]) => {
    const [id = "", context = "", status = "", metadata] = texts;
    return {
      seq: toNumber(seq),
      number: toNumber(number),
      floor: toNumber(floor),
      messageSegment: messageSegment === "" ? undefined : toNumber(messageSegment),
      place: toNumber(place),
      id: unmark(id),
      contextId: unmark(context),
      status,
      metadata: metadata === "" ? undefined : metadata,
    };
  });
}

/** A row of `task` as one text. */
export const HEAD_TEXT = packed(
  "scope, number, floor, fence, turn, attempt, cancel, created_at, id, context, status, node, dialect",
);

export function toHead(stored: StoredText, scopeOf: (id: number) => Scope): TaskHead {
  const [values = []] = unpack(stored, 13);
  const [scope, number, floor, fence, turn, attempt, cancel, createdAt, ...texts] = values;
  const [id = "", context = "", status = "", node = "", dialect = ""] = texts;
  const { agent, tenant, owner } = scopeOf(toNumber(scope));
  return {
    agent,
    tenant,
    owner,
    id: unmark(id),
    contextId: unmark(context),
    status: parseJson(status) as TaskStatus,
    number: toNumber(number),
    floor: toNumber(floor),
    fence: toNumber(fence),
    node: node === "" ? undefined : unmark(node),
    turn: toNumber(turn),
    attempt: toNumber(attempt),
    cancelRequested: cancel === "1",
    dialect: unmark(dialect),
    createdAt: toNumber(createdAt),
  };
}
