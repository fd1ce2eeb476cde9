import { isTerminal, type TaskState } from "../model/state.ts";
import type { TaskStatus } from "../model/task.ts";
import type { Append, Discard, Refusal, Remember, RequestCancel, Submit, WriteResult } from "./contract.ts";
import type { Liveness } from "./liveness.ts";

/** What decides whether a write to a task is accepted, in every store the same. */
export interface Guarded {
  readonly number: number;
  readonly state: TaskState;
  readonly fence: number;
  readonly node: string | undefined;
}

export interface LeaseState {
  readonly fence: number;
  readonly node: string | undefined;
  readonly turn: number;
  /** Runs begun for the current turn. */
  readonly attempt: number;
}

type PlainRefusal = Exclude<Refusal, "duplicate">;

export function refusalOf(
  task: Guarded | undefined,
  write: Append | Discard | RequestCancel | Remember,
  liveness: Liveness,
): PlainRefusal | undefined {
  if (task === undefined) return "missing";
  if (isTerminal(task.state)) return "terminal";
  if (write.kind === "request-cancel") return undefined;
  if (write.fence !== undefined && write.fence !== task.fence) return "fenced";
  if (write.kind !== "append") return undefined;
  if (typeof write.lease === "object" && task.node !== undefined && task.node !== write.lease.take) {
    if (!liveness.isSilent(task.node)) return "fenced";
  }
  if (write.expect !== task.number) return "position";
  const first = write.entries[0];
  return first === undefined || first.number === write.expect + 1 ? undefined : "position";
}

export function accepted(number: number, fence: number, due: boolean): WriteResult {
  return due ? { ok: true, number, fence, due } : { ok: true, number, fence };
}

export function leaseAtSubmit(write: Submit): LeaseState {
  const leased = write.node !== undefined && !isTerminal(write.status.state);
  return {
    fence: leased ? 1 : 0,
    node: leased ? write.node : undefined,
    turn: write.turn,
    attempt: leased && write.begins !== false ? 1 : 0,
  };
}

export function leaseAfterAppend(task: LeaseState, write: Append): LeaseState {
  let { fence, node, turn, attempt } = task;
  if (write.turn !== undefined && write.turn !== turn) {
    turn = write.turn;
    // A node that goes on to the next turn begins its first run; one that takes the task is counted below.
    attempt = node !== undefined && typeof write.lease !== "object" && write.begins !== true ? 1 : 0;
  }
  const takes = typeof write.lease === "object";
  if (takes ? write.begins !== false : write.begins === true) attempt += 1;
  if (write.lease === "release") node = undefined;
  else if (write.lease !== undefined) {
    fence += 1;
    node = write.lease.take;
  }
  if (write.status !== undefined && isTerminal(write.status.state)) node = undefined;
  return { fence, node, turn, attempt };
}

let lastText: string | undefined;
let lastTime = 0;

/** A status without a usable timestamp counts as of `now`. */
export function statusTime(status: TaskStatus, now: number): number {
  const text = status.timestamp;
  if (text === undefined) return now;
  // Many statuses share a millisecond, and parsing is the dearest part of a write in memory.
  if (text !== lastText) {
    lastTime = Date.parse(text);
    lastText = text;
  }
  return Number.isNaN(lastTime) ? now : lastTime;
}
