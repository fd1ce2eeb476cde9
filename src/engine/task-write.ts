import type { LogEntry, RequestNote, TaskEvent } from "../model/event.ts";
import type { Message } from "../model/message.ts";
import type { TaskStatus } from "../model/task.ts";
import type { Append, IdempotencyClaim, PushRegistration, Submit } from "../store/contract.ts";
import type { LiveTask } from "./live-task.ts";

/** What travels with an event that a caller's message brought. */
export interface Arrival {
  /** Not for the first message of a task, which is in the task itself. */
  readonly received?: Message | undefined;
  readonly request?: RequestNote | undefined;
  /** Makes a repeat of the message known; written together with its event. */
  readonly claim?: IdempotencyClaim | undefined;
  /** Where the caller wants to be told of what follows; written together with its event. */
  readonly push?: PushRegistration | undefined;
}

export interface PendingEvent extends Arrival {
  event: TaskEvent;
}

export const NO_ARRIVAL: Arrival = {};

/** A write that the store has been given, with what it is to be put together from again if it must be repeated. */
export interface InFlight {
  readonly events: readonly PendingEvent[];
  readonly entries: readonly LogEntry[];
  readonly turn: number | undefined;
  readonly release: boolean;
  readonly begins: boolean | undefined;
  readonly marks: number;
}

/** The first write of a task, which may already be its last. */
export function toSubmit(task: LiveTask, { entries, events, release, begins }: InFlight, node: string): Submit {
  const claim = claimOf(events);
  const push = pushOf(events);
  // A second event is a sign of the agent's, and with one the task stays.
  const tellAfter = push === undefined || entries.length > 1 ? undefined : task.tellAfter;
  return {
    kind: "submit",
    id: task.id,
    agent: task.agent,
    tenant: task.tenant,
    owner: task.owner,
    contextId: task.contextId,
    dialect: task.dialect,
    entries,
    status: statusAfter(entries) as TaskStatus,
    turn: 1,
    ...(release ? undefined : { node }),
    ...(begins === undefined ? undefined : { begins }),
    ...(claim === undefined ? undefined : { idempotency: claim }),
    ...(push === undefined ? undefined : { push }),
    ...(tellAfter === undefined ? undefined : { notifyAfter: tellAfter }),
  };
}

/** `taker`: the node that takes the lease of a parked task with this write. */
export function toAppend(task: LiveTask, inFlight: InFlight, taker: string | undefined): Append {
  const { entries, events, turn, release, begins } = inFlight;
  const status = statusAfter(entries);
  const claim = claimOf(events);
  const push = pushOf(events);
  return {
    kind: "append",
    id: task.id,
    expect: task.fold.number,
    fence: task.fence,
    entries,
    ...(status === undefined ? undefined : { status }),
    ...(turn === undefined ? undefined : { turn }),
    ...(taker === undefined ? undefined : { lease: { take: taker } }),
    ...(release ? { lease: "release" as const } : undefined),
    ...(begins === undefined ? undefined : { begins }),
    ...(claim === undefined ? undefined : { idempotency: claim }),
    ...(push === undefined ? undefined : { push }),
  };
}

function claimOf(events: readonly PendingEvent[]): IdempotencyClaim | undefined {
  for (const { claim } of events) if (claim !== undefined) return claim;
  return undefined;
}

/** In the order they came; undefined, and nothing made, for the many writes without any. */
function pushOf(events: readonly PendingEvent[]): readonly PushRegistration[] | undefined {
  let found: PushRegistration[] | undefined;
  for (const { push } of events) {
    if (push === undefined) continue;
    found ??= [];
    found.push(push);
  }
  return found;
}

function statusAfter(entries: readonly LogEntry[]): TaskStatus | undefined {
  for (let index = entries.length - 1; index >= 0; index--) {
    const event = (entries[index] as LogEntry).event;
    if ("statusUpdate" in event) return event.statusUpdate.status;
    if ("task" in event) return event.task.status;
  }
  return undefined;
}
