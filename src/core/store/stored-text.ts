import { TASK_STATES, type TaskState } from "../model/task.ts";
import type { DeliveryRegistration } from "./contract.ts";
import { StoreError } from "./errors.ts";

/**
 * Text of a database is UTF-8, and ends at a NUL or must have none. Ids and keys come from callers and may be any
 * JavaScript string, so those that would not survive are stored as JSON behind a mark; all others as they are.
 */
const ESCAPE_MARK = "\u0001";
const LONE_SURROGATE = /\p{Surrogate}/u;

export function toText(value: string): string {
  if (LONE_SURROGATE.test(value) || value.includes("\0") || value.startsWith(ESCAPE_MARK))
    return ESCAPE_MARK + JSON.stringify(value);
  return value;
}

export function textOrNull(value: string | undefined): string | null {
  return value === undefined ? null : toText(value);
}

/** The value of a text that was decoded. */
export function unescapeText(text: string): string {
  return text.startsWith(ESCAPE_MARK) ? (parseJson(text.slice(ESCAPE_MARK.length)) as string) : text;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new StoreError("damaged", "A text is not JSON.", { cause });
  }
}

/** The order databases have for text as bytes, which is not that of JavaScript. */
export function compareTexts(left: string, right: string): number {
  return left === right ? 0 : Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** Stored, so never renumbered. */
export const STATE_CODES = {
  // Of tasks of other agents only, which are not stored.
  TASK_STATE_UNSPECIFIED: 0,
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

/** Stored, so never renumbered. */
export const WANTS_CODES = { events: 0, outcome: 1 } as const satisfies Record<DeliveryRegistration["wants"], number>;
