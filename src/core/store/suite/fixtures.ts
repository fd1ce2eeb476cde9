import { expect } from "vitest";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import type { Message, Part } from "../../model/message.ts";
import type { Clock } from "../../model/ports.ts";
import type { Task, TaskState, TaskStatus } from "../../model/task.ts";
import {
  type Append,
  COUNTER_LAG_MS,
  type DeliveryRegistration,
  type ListPage,
  type ListQuery,
  type Scope,
  type Submit,
  type TaskStore,
  type Write,
  type WriteResult,
} from "../contract.ts";

export const ALICE: Scope = { agent: "echo", tenant: "", owner: "alice" };
export const WORKING = "TASK_STATE_WORKING";
export const COMPLETED = "TASK_STATE_COMPLETED";
export const SUBMITTED = "TASK_STATE_SUBMITTED";
export const INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED";

/** Statuses are dated from here on, in small numbers. */
export const EPOCH = Date.UTC(2026, 0, 1);
export const MINUTE = 60_000;

const NOTHING = { history: 0, artifacts: false };
export const EVERYTHING = { history: Number.POSITIVE_INFINITY, artifacts: true };

/** The clock of a store under test: it moves when told, and may be minutes away from the clock of those who write. */
export class StoreClock implements Clock {
  #now: number;

  constructor(skewMs = 0) {
    this.#now = Date.now() + skewMs;
  }

  now(): number {
    return this.#now;
  }

  after(): () => void {
    return () => {};
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

let unique = 0;
/** Ids differ between tests, so that one store can serve many of them. */
export function uniqueId(prefix = "task"): string {
  return `${prefix}-${(unique++).toString().padStart(6, "0")}`;
}

export function message(text: string, role: Message["role"] = "ROLE_USER"): Message {
  return { messageId: `message ${text}`, role, parts: [{ text }] };
}

export function status(state: TaskState, at = 0, said?: string): TaskStatus {
  return {
    state,
    ...(said === undefined ? undefined : { message: message(said, "ROLE_AGENT") }),
    timestamp: new Date(EPOCH + at).toISOString(),
  };
}

export function contextOf(id: string): string {
  return `context of ${id}`;
}

export function taskEvent(id: string, more: Partial<Task> = {}): TaskEvent {
  return { task: { id, contextId: contextOf(id), status: status(SUBMITTED), ...more } };
}

export function statusEvent(id: string, now: TaskStatus, contextId = contextOf(id)): TaskEvent {
  return { statusUpdate: { taskId: id, contextId, status: now } };
}

export function chunkEvent(id: string, parts: readonly Part[], append = true, artifactId = "output"): TaskEvent {
  return { artifactUpdate: { taskId: id, contextId: contextOf(id), artifact: { artifactId, parts }, append } };
}

function entriesOf(events: readonly TaskEvent[], first = 1): LogEntry[] {
  return events.map((event, index) => LogEntry.of(first + index, event));
}

/** A submit of a task event and what else is given; its status is that of the last event that has one. */
export function submit(id: string, events: readonly TaskEvent[] = [], more: Partial<Submit> = {}): Submit {
  const contextId = more.contextId ?? contextOf(id);
  const all = [taskEvent(id, { contextId }), ...events];
  return {
    kind: "submit",
    ...ALICE,
    id,
    contextId,
    dialect: "a2a-v1",
    entries: entriesOf(all),
    status: lastStatus(all) ?? status(SUBMITTED),
    turn: 1,
    ...more,
  };
}

export function append(id: string, after: number, events: readonly TaskEvent[], more: Partial<Append> = {}): Append {
  const now = lastStatus(events);
  return {
    kind: "append",
    id,
    expect: after,
    entries: entriesOf(events, after + 1),
    ...(now === undefined ? undefined : { status: now }),
    ...more,
  };
}

function lastStatus(events: readonly TaskEvent[]): TaskStatus | undefined {
  for (const event of events.toReversed()) {
    if ("task" in event) return event.task.status;
    if ("statusUpdate" in event) return event.statusUpdate.status;
  }
  return undefined;
}

export async function writeOne(store: TaskStore, write: Write): Promise<WriteResult> {
  const [result] = await store.write([write]);
  return result as WriteResult;
}

function rowOf(write: Write): string {
  return "id" in write ? write.id : JSON.stringify([write.space, write.key]);
}

/** In as few calls as the contract allows: each has at most one write per task or record. */
export async function writeAll(store: TaskStore, writes: readonly Write[]): Promise<readonly WriteResult[]> {
  const calls: Write[][] = [[]];
  for (const write of writes) {
    if (calls.at(-1)?.some((other) => rowOf(other) === rowOf(write))) calls.push([]);
    calls.at(-1)?.push(write);
  }
  const results: WriteResult[] = [];
  for (const call of calls) results.push(...(await store.write(call)));
  return results;
}

/** Writes that must all be accepted. */
export async function accept(store: TaskStore, ...writes: Write[]): Promise<void> {
  for (const result of await writeAll(store, writes)) expect(result).toMatchObject({ ok: true });
}

/** A finished task in one commit. */
export function finished(id: string, at = 0, more: Partial<Submit> = {}): Submit {
  const contextId = more.contextId ?? contextOf(id);
  return submit(id, [statusEvent(id, status(COMPLETED, at), contextId)], more);
}

export function listQuery(scope: Scope, more: Partial<ListQuery> = {}): ListQuery {
  return { agent: scope.agent, tenant: scope.tenant, owner: scope.owner, limit: 10, ...NOTHING, ...more };
}

/** A webhook, unless another route is given. */
export function registration(id: string, more: Partial<DeliveryRegistration> = {}): DeliveryRegistration {
  const address = `https://hook.example/${id}`;
  return { id, route: "webhook", address, dialect: "a2a-v1", wants: "events", ...more };
}

export function uniqueScope(): Scope {
  return { ...ALICE, tenant: uniqueId("tenant") };
}

export async function walk(store: TaskStore, query: ListQuery): Promise<string[]> {
  const ids: string[] = [];
  let page: ListPage = await store.list(query);
  for (;;) {
    ids.push(...page.tasks.map((task) => task.id));
    if (page.next === undefined) return ids;
    page = await store.list({ ...query, after: page.next });
  }
}

/** Texts of entries as they would go to a reader. */
export async function readAll(store: TaskStore, id: string, after = 0, limit = 1000): Promise<string[]> {
  const [read] = await store.read([{ id, after }], limit);
  if (read?.kind !== "entries") throw new Error(`expected entries, got ${read?.kind}`);
  return read.entries.map((entry) => entry.json);
}

/** Counters may lag: they are asked again for as long as the contract allows. */
export function expectCounter<T>(read: () => Promise<T>) {
  return expect.poll(read, { timeout: COUNTER_LAG_MS, interval: 20 });
}

export async function drain(step: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (;;) {
    const count = await step();
    if (count === 0) return sum;
    sum += count;
  }
}
