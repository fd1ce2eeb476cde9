import { isInterrupted, isTerminal, type Task, type TaskState, type TaskStatus } from "../model/task.ts";
import type {
  Append,
  Discard,
  PushProgress,
  Refusal,
  Remember,
  RequestCancel,
  Scope,
  Submit,
  Write,
  WriteResult,
} from "./contract.ts";
import type { Liveness } from "./single-process.ts";

/** Pages that are bounded by how much there is to say, not only by how many tasks. */

interface TakenPage {
  readonly tasks: Task[];
  /** How many of those found are on the page, or were left out because they cannot be read. */
  readonly taken: number;
}

/** The first task in any case, and then as many as fit; `read` is asked for one more at most. */
export function takePage<T>(
  found: readonly T[],
  characters: number | undefined,
  read: (one: T) => Task | undefined,
): TakenPage {
  const tasks: Task[] = [];
  let left = characters;
  for (const [index, one] of found.entries()) {
    const task = read(one);
    if (task === undefined) continue;
    if (left !== undefined) left -= estimateSize(task);
    if (left !== undefined && left < 0 && tasks.length > 0) return { tasks, taken: index };
    tasks.push(task);
  }
  return { tasks, taken: found.length };
}

/** Characters of the names and values; less than their JSON has, which costs as much to make as the answer itself. */
function estimateSize(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return SCALAR_SIZE;
  let size = 0;
  if (Array.isArray(value)) for (const item of value) size += estimateSize(item);
  else for (const name in value) size += name.length + estimateSize(Reflect.get(value, name));
  return size;
}

const SCALAR_SIZE = 4;

/** What is kept of a config's deliveries beside its cursor, in every store the same. */
export interface PushState {
  readonly cursor: number;
  readonly attempts: number;
  /** When it may next be claimed; undefined: there is nothing to tell, or it was given up. */
  readonly dueAt: number | undefined;
  readonly holder: string | undefined;
  readonly lastError: string | undefined;
  readonly deadAt: number | undefined;
}

/** By which configs share the bound of one host. Addresses were judged long before; what is none shares with its like. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "";
}

/** `number` is where the task's log stands. */
export function applyPushProgress(
  before: PushState,
  { cursor, next }: PushProgress,
  number: number,
  now: number,
): PushState {
  const told = cursor > before.cursor;
  const kept = {
    cursor,
    attempts: told ? 0 : before.attempts,
    lastError: told ? undefined : before.lastError,
    holder: undefined,
    deadAt: undefined,
  };
  switch (next.kind) {
    case "hold":
      return { ...kept, holder: before.holder, dueAt: next.until };
    case "release":
      return { ...kept, dueAt: cursor < number ? now : undefined };
    case "retry":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: next.at };
    case "dead":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: undefined, deadAt: now };
  }
}

/** Lengths first, so that no two scopes share a key whatever characters they contain. */
export function scopeKey({ agent, tenant, owner }: Scope): string {
  return `${agent.length}:${tenant.length}:${agent}${tenant}${owner}`;
}

/** What decides whether a write to a task is accepted, in every store the same. */
interface WriteTarget {
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

/** Throws where a caller breaks the rule of `TaskStore.write`, on every store and not only on one that depends on it. */
export function assertOneWritePerTask(writes: readonly Write[]): void {
  if (writes.length < 2) return;
  const rows = new Set<string | number>();
  const registered = new Set<string>();
  const add = (row: string | number, id: string) => {
    if (rows.has(row)) throw new Error(`The call has more than one write for the task ${id}.`);
    rows.add(row);
  };
  for (const { id, kind } of writes) {
    if (kind !== "push-progress") add(id, id);
    if (kind === "push-put" || kind === "push-delete") registered.add(id);
  }
  for (const write of writes) {
    if (write.kind === "push-progress") add(registered.has(write.id) ? write.id : write.place, write.id);
  }
}

type PlainRefusal = Exclude<Refusal, "duplicate">;

export function findRefusal(
  task: WriteTarget | undefined,
  write: Append | Discard | RequestCancel | Remember,
  liveness: Liveness,
): PlainRefusal | undefined {
  if (task === undefined) return "missing";
  if (isTerminal(task.state)) return "terminal";
  if (write.kind === "request-cancel") return undefined;
  if (write.fence !== undefined && write.fence !== task.fence) return "fenced";
  if (write.kind === "discard" && write.expect !== undefined && write.expect !== task.number) return "position";
  if (write.kind !== "append") return undefined;
  if (typeof write.lease === "object" && task.node !== undefined && task.node !== write.lease.take) {
    if (!liveness.isExpired(task.node)) return "fenced";
  }
  if (write.expect !== task.number) return "position";
  const first = write.entries[0];
  return first === undefined || first.number === write.expect + 1 ? undefined : "position";
}

export function acceptWrite(number: number, fence: number, due: boolean): WriteResult {
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

export function leaseAfterAppend(task: LeaseState & { readonly state: TaskState }, write: Append): LeaseState {
  let { fence, node, turn, attempt } = task;
  if (node === undefined && write.fence === undefined && write.lease === undefined && isInterrupted(task.state)) {
    // The node that ran the task has just given it up. The turns before are answered: a claim begins with this message.
    turn = write.expect + 1;
    attempt = 0;
  }
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

let lastTimestamp: string | undefined;
let lastTime = 0;

/** A status without a usable timestamp counts as of `now`. */
export function statusTime(status: TaskStatus, now: number): number {
  const text = status.timestamp;
  if (text === undefined) return now;
  // Many statuses share a millisecond, and parsing is the dearest part of a write in memory.
  if (text !== lastTimestamp) {
    lastTime = Date.parse(text);
    lastTimestamp = text;
  }
  return Number.isNaN(lastTime) ? now : lastTime;
}
