import { isInterrupted, isTerminal, STATE_CLASS, type Task, type TaskState, type TaskStatus } from "../model/task.ts";
import { parseUrl } from "../model/url.ts";
import {
  type AcceptedWrite,
  type Append,
  type DeliveryClaim,
  type DeliveryGroup,
  type DeliveryProgress,
  type DeliveryRegistration,
  type Discard,
  type Refusal,
  type Remember,
  type RequestCancel,
  registersDeliveries,
  type Scope,
  type Submit,
  WEBHOOK_ROUTE,
  type Write,
} from "./contract.ts";
import type { Liveness } from "./single-process.ts";

/** A page that is bounded by size, not only by the number of tasks. */
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

/** What is kept of a delivery's progress, in every store the same. */
export interface DeliveryState {
  readonly cursor: number;
  readonly attempts: number;
  /** When it may next be claimed; undefined: nothing is due, or it was given up. */
  readonly dueAt: number | undefined;
  readonly holder: string | undefined;
  readonly lastError: string | undefined;
  readonly deadAt: number | undefined;
}

/** What deliveries of one lane share is a bound. Addresses were checked long before; what is not a URL has no host. */
export function laneOf({ route, address }: Pick<DeliveryRegistration, "route" | "address">): string {
  if (route !== WEBHOOK_ROUTE) return route;
  return parseUrl(address)?.host ?? "";
}

export function groupOf(route: string): DeliveryGroup {
  return route === WEBHOOK_ROUTE ? "webhooks" : "replies";
}

/** Whether a delivery with events left is due, by the state of its task. */
export function isDeliverable(wants: DeliveryRegistration["wants"], state: TaskState): boolean {
  return wants === "events" || STATE_CLASS[state] !== "active";
}

/** The state after a registration or the replacement of one; nothing is due for `notifyAfterMs`. */
export function registeredState(
  { heldBy, wants }: DeliveryRegistration,
  cursor: number,
  task: { readonly number: number; readonly state: TaskState },
  now: number,
  notifyAfterMs: number,
): DeliveryState {
  const state = { cursor, attempts: 0, lastError: undefined, deadAt: undefined };
  if (heldBy !== undefined) return { ...state, holder: heldBy.node, dueAt: now + heldBy.ttlMs };
  const isDue = cursor < task.number && isDeliverable(wants, task.state);
  return { ...state, holder: undefined, dueAt: isDue ? now + notifyAfterMs : undefined };
}

/** Undefined: the delivery is done. */
export function applyDeliveryProgress(
  before: DeliveryState,
  wants: DeliveryRegistration["wants"],
  { cursor, next }: DeliveryProgress,
  task: { readonly number: number; readonly state: TaskState },
  now: number,
): DeliveryState | undefined {
  const advanced = cursor > before.cursor;
  const kept = {
    cursor,
    attempts: advanced ? 0 : before.attempts,
    lastError: advanced ? undefined : before.lastError,
    holder: undefined,
    deadAt: undefined,
  };
  switch (next.kind) {
    case "hold":
      return { ...kept, holder: before.holder, dueAt: now + next.ttlMs };
    case "release":
      return { ...kept, dueAt: cursor < task.number && isDeliverable(wants, task.state) ? now : undefined };
    case "retry":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: now + next.inMs };
    case "dead":
      return { ...kept, attempts: kept.attempts + 1, lastError: next.error, dueAt: undefined, deadAt: now };
    case "done":
      return undefined;
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
  if (writes.length < 2 || areOfDifferentTasks(writes)) return;
  const rows = new Set<string | number>();
  const records = new Set<string>();
  const registered = new Set<string>();
  const add = <Row>(known: Set<Row>, row: Row, name: string) => {
    if (known.has(row)) throw new Error(`The call has more than one write for the ${name}.`);
    known.add(row);
  };
  for (const write of writes) {
    if (!("id" in write)) add(records, JSON.stringify([write.space, write.key]), `record ${write.key}`);
    else if (write.kind !== "delivery-progress") add(rows, write.id, `task ${write.id}`);
    if (registersDeliveries(write)) registered.add(write.id);
  }
  for (const write of writes) {
    if (write.kind !== "delivery-progress") continue;
    add(rows, registered.has(write.id) ? write.id : write.place, `task ${write.id}`);
  }
}

/** The usual group, without records, deliveries and all that has to be compared because of them. */
function areOfDifferentTasks(writes: readonly Write[]): boolean {
  const ids = new Set<string>();
  for (const write of writes) {
    if (write.kind !== "submit" && write.kind !== "append") return false;
    ids.add(write.id);
  }
  return ids.size === writes.length;
}

type PlainRefusal = Exclude<Refusal, "duplicate">;

export function findRefusal(
  task: WriteTarget | undefined,
  write: Append | Discard | RequestCancel | Remember,
  liveness: Pick<Liveness, "isExpired">,
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

/** What a write did to deliveries: the routes that may have some due now, and those that its node holds. */
export interface DeliveryEffects {
  readonly due: readonly string[];
  readonly held?: readonly DeliveryClaim[];
}

export const NO_EFFECTS: DeliveryEffects = { due: [] };

export function joinEffects(one: DeliveryEffects, other: DeliveryEffects): DeliveryEffects {
  return one === NO_EFFECTS ? other : { ...other, due: [...new Set([...one.due, ...other.due])] };
}

export function acceptWrite(number: number, fence: number, { due, held = [] }: DeliveryEffects): AcceptedWrite {
  if (due.length === 0 && held.length === 0) return { ok: true, number, fence };
  return { ok: true, number, fence, ...(due.length > 0 && { due }), ...(held.length > 0 && { held }) };
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
    // A node that continues with the next turn begins its first run; one that takes the task is counted below.
    attempt = node !== undefined && typeof write.lease !== "object" && write.begins !== true ? 1 : 0;
  }
  const takes = typeof write.lease === "object";
  if (takes ? write.begins !== false : write.begins === true) attempt += 1;
  if (!takes && write.begins === false) attempt = write.lease === "release" ? Math.min(attempt, 1) : attempt - 1;
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
